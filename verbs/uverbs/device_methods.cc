// Methods of the device object, of which there is one without a handle.
#include <array>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/creation.h"
#include "verbs/uverbs/device_facts.h"
#include "verbs/uverbs/method_table.h"

namespace urxe::verbs::uverbs {
namespace {

constexpr std::uint32_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();

// A write() command in an ioctl's clothes. libibverbs tries with a request that is too short
// whether it is there, and expects ENOSPC.
Status invoke_write(Context& context, const Attributes& attributes) {
  const auto number = attributes.constant(UVERBS_ATTR_WRITE_CMD, kMaxU32);
  if (!number) return tl::unexpected(number.error());
  const auto entry = find_command(static_cast<std::uint32_t>(*number));
  if (!entry) return tl::unexpected(entry.error());
  const Command command{.in = attributes.buffer(UVERBS_ATTR_CORE_IN),
                        .out = attributes.buffer(UVERBS_ATTR_CORE_OUT),
                        .driver = attributes.driver(),
                        .output_flags = attributes.flags_address(UVERBS_ATTR_CORE_OUT)};
  const bool fits =
      command.in.size >= (*entry)->request_size && command.out.size >= (*entry)->response_size;
  if (!fits && command.in.size == 0) return refuse_quietly(ENOSPC);  // the probe
  if (!fits) {
    return refuse(ENOSPC, fmt::format("{}: {} and {} bytes for request and response, at least {} "
                                      "and {} are needed",
                                      (*entry)->name, command.in.size, command.out.size,
                                      (*entry)->request_size, (*entry)->response_size));
  }
  auto done = (*entry)->handler(context, command);
  if (!done) return tl::unexpected(about((*entry)->name, std::move(done).error()));
  return done;
}

Status open_context_method(Context& context, const Attributes& attributes) {
  const std::uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
  if (auto told = attributes.put(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, completion_vectors());
      !told) {
    return told;
  }
  if (auto told = attributes.put(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, support); !told) {
    return told;
  }
  if (context.is_established()) return refuse(EINVAL, "this file has a context already");
  context.establish();
  return {};
}

Status query_context(Context& context, const Attributes&) {
  if (auto ready = context.need_context(); !ready) return ready;
  return refuse(EOPNOTSUPP, "rxe has nothing to tell of a context");
}

Status query_port_method(Context& context, const Attributes& attributes) {
  if (auto ready = context.need_context(); !ready) return ready;
  const auto port = attributes.constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 0xFF);
  if (!port) return tl::unexpected(port.error());
  if (*port != kPort) return refuse(EINVAL, fmt::format("there is no port {}", *port));
  ib_uverbs_query_port_resp_ex response{};
  response.legacy_resp = port_facts(context.config(), context.device());
  return attributes.put_struct(UVERBS_ATTR_QUERY_PORT_RESP, response);
}

std::vector<ib_uverbs_gid_entry> gid_entries(Context& context) {
  const emulator::GidTable& table = context.device().gids();
  std::vector<ib_uverbs_gid_entry> entries;
  for (std::uint32_t i = 0; i < table.gids().size(); ++i) {
    if (table.holds(i)) entries.push_back(gid_entry(context.config(), context.device(), i));
  }
  return entries;
}

// The program says how large its entries are: it may be of another version.
Status put_entries(const Attributes& attributes, const std::vector<ib_uverbs_gid_entry>& entries,
                   std::size_t entry_size) {
  UserBuffer room = attributes.buffer(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
  const std::size_t known = std::min(entry_size, sizeof(ib_uverbs_gid_entry));
  for (const ib_uverbs_gid_entry& entry : entries) {
    const bool written = copy_to_user(room.address, &entry, known) &&
                         clear_user({room.address + known, entry_size - known});
    if (!written) return bad_address("table of GIDs", room.address);
    room = room.behind(entry_size);
  }
  return attributes.note_output(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
}

Status query_gid_table(Context& context, const Attributes& attributes) {
  if (auto flags = attributes.flags(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0); !flags) {
    return tl::unexpected(flags.error());
  }
  const auto size = attributes.constant(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, SIZE_MAX);
  if (!size) return tl::unexpected(size.error());
  const std::size_t room = attributes.buffer(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES).size;
  if (*size == 0 || room == 0 || room % *size != 0) {
    return refuse(EINVAL,
                  fmt::format("{} bytes are not a table of entries of {} bytes", room, *size));
  }
  if (auto ready = context.need_context(); !ready) return ready;
  const auto entries = gid_entries(context);
  if (entries.size() > room / *size) {
    return refuse(EINVAL, fmt::format("there is room for {} GIDs, the port has {}", room / *size,
                                      entries.size()));
  }
  if (auto told = put_entries(attributes, entries, *size); !told) return told;
  return attributes.put(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES,
                        std::uint64_t{entries.size()});
}

Status query_gid_entry(Context& context, const Attributes& attributes) {
  if (auto flags = attributes.flags(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0); !flags) {
    return tl::unexpected(flags.error());
  }
  const auto port = attributes.constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, kMaxU32);
  if (!port) return tl::unexpected(port.error());
  const auto index = attributes.constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, kMaxU32);
  if (!index) return tl::unexpected(index.error());
  if (auto ready = context.need_context(); !ready) return ready;
  if (*port != kPort) return refuse(EINVAL, fmt::format("there is no port {}", *port));
  if (*index >= kGidTableSize) {
    return refuse(EINVAL, fmt::format("the GID table ends before {}", *index));
  }
  const auto wanted = static_cast<std::uint32_t>(*index);
  if (!context.device().gids().holds(wanted)) return refuse_quietly(ENODATA);
  return attributes.put_struct(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY,
                               gid_entry(context.config(), context.device(), wanted));
}

std::optional<Kind> kind_of(std::uint64_t object) {
  switch (object) {
    case UVERBS_OBJECT_PD:
      return Kind::pd;
    case UVERBS_OBJECT_MR:
      return Kind::mr;
    case UVERBS_OBJECT_MW:
      return Kind::mw;
    case UVERBS_OBJECT_CQ:
      return Kind::cq;
    case UVERBS_OBJECT_QP:
      return Kind::qp;
    case UVERBS_OBJECT_SRQ:
      return Kind::srq;
    case UVERBS_OBJECT_AH:
      return Kind::ah;
    default:
      return std::nullopt;
  }
}

// The handles of all objects of a kind, as far as there is room.
Status info_handles(Context& context, const Attributes& attributes) {
  const std::size_t room = attributes.buffer(UVERBS_ATTR_INFO_HANDLES_LIST).size;
  if (room == 0 || room % sizeof(std::uint32_t) != 0) {
    return refuse(EINVAL, fmt::format("{} bytes are not a list of handles", room));
  }
  const auto number = attributes.constant(UVERBS_ATTR_INFO_OBJECT_ID, kMaxU32);
  if (!number) return tl::unexpected(number.error());
  const auto kind = kind_of(*number);
  if (!kind) return refuse(EINVAL, fmt::format("objects of type {} have no handles", *number));
  std::vector<std::uint32_t> handles;
  for (const auto& object : context.objects().all()) {
    if (handles.size() == room / sizeof(std::uint32_t)) break;
    if (object != nullptr && object->kind == *kind) handles.push_back(object->handle);
  }
  if (auto told = attributes.put_bytes(UVERBS_ATTR_INFO_HANDLES_LIST, handles.data(),
                                       handles.size() * sizeof(std::uint32_t));
      !told) {
    return told;
  }
  return attributes.put(UVERBS_ATTR_INFO_TOTAL_HANDLES, static_cast<std::uint32_t>(handles.size()));
}

constexpr std::array kInfoHandles{
    constant_in(UVERBS_ATTR_INFO_OBJECT_ID, kMandatory),
    value_out<std::uint32_t>(UVERBS_ATTR_INFO_TOTAL_HANDLES, kOptional),
    bytes_out(UVERBS_ATTR_INFO_HANDLES_LIST, kOptional, sizeof(std::uint32_t)),
};
constexpr std::array kInvokeWrite{
    constant_in(UVERBS_ATTR_WRITE_CMD, kMandatory),
    bytes_in(UVERBS_ATTR_CORE_IN, kOptional, sizeof(std::uint32_t)),
    bytes_out(UVERBS_ATTR_CORE_OUT, kOptional),
    bytes_in(UVERBS_ATTR_UHW_IN, kOptional),
    bytes_out(UVERBS_ATTR_UHW_OUT, kOptional),
};
constexpr std::array kGetContext{
    value_out<std::uint32_t>(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, kOptional),
    value_out<std::uint64_t>(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, kOptional),
    bytes_in(UVERBS_ATTR_UHW_IN, kOptional),
    bytes_out(UVERBS_ATTR_UHW_OUT, kOptional),
};
constexpr std::array kQueryContext{
    value_out<std::uint32_t>(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, kOptional),
    value_out<std::uint64_t>(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, kOptional),
};
constexpr std::array kQueryPort{
    constant_in(UVERBS_ATTR_QUERY_PORT_PORT_NUM, kMandatory),
    struct_out<ib_uverbs_query_port_resp_ex>(UVERBS_ATTR_QUERY_PORT_RESP, kMandatory,
                                             sizeof(ib_uverbs_query_port_resp_ex)),
};
constexpr std::array kQueryGidTable{
    constant_in(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, kMandatory),
    flags_in(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, kOptional),
    bytes_out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, kMandatory),
    value_out<std::uint64_t>(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, kMandatory),
};
constexpr std::array kQueryGidEntry{
    constant_in(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, kMandatory),
    constant_in(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, kMandatory),
    flags_in(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, kMandatory),
    struct_out<ib_uverbs_gid_entry>(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, kMandatory,
                                    sizeof(ib_uverbs_gid_entry)),
};

constexpr std::array kMethods{
    Method{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, "INVOKE_WRITE", invoke_write,
           kInvokeWrite},
    Method{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, "INFO_HANDLES", info_handles,
           kInfoHandles},
    Method{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, "GET_CONTEXT", open_context_method,
           kGetContext},
    Method{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, "QUERY_CONTEXT", query_context,
           kQueryContext},
    Method{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, "QUERY_PORT", query_port_method,
           kQueryPort},
    Method{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, "QUERY_GID_TABLE", query_gid_table,
           kQueryGidTable},
    Method{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, "QUERY_GID_ENTRY", query_gid_entry,
           kQueryGidEntry},
};

}  // namespace

std::span<const Method> device_methods() { return kMethods; }

}  // namespace urxe::verbs::uverbs
