#include "verbs/uverbs/ioctl_front.h"

#include <cstddef>

#include <rdma/ib_user_ioctl_verbs.h>

#include "verbs/uverbs/method_table.h"

namespace urxe::verbs::uverbs {
namespace {

constexpr std::size_t kMaxLength = 4096;  // the kernel's page

Status check_header(const ib_uverbs_ioctl_hdr& header) {
  const std::size_t length = sizeof(header) + header.num_attrs * sizeof(ib_uverbs_attr);
  if (header.length > kMaxLength || header.length != length) {
    return refuse(EINVAL, fmt::format("an ioctl of {} bytes cannot have {} attributes",
                                      header.length, header.num_attrs));
  }
  if (header.reserved1 != 0 || header.reserved2 != 0) {
    return refuse(EPROTONOSUPPORT, "reserved fields of the header are not 0");
  }
  if (header.driver_id != RDMA_DRIVER_RXE) {
    return refuse(EINVAL, fmt::format("the driver is rxe ({}), not {}",
                                      static_cast<int>(RDMA_DRIVER_RXE), header.driver_id));
  }
  return {};
}

}  // namespace

const Method* find_method(std::uint16_t object, std::uint16_t id) {
  for (const auto& methods : {device_methods(), memory_methods(), queue_methods()}) {
    for (const Method& method : methods) {
      if (method.object == object && method.id == id) return &method;
    }
  }
  return nullptr;
}

Status run_ioctl(Context& context, std::uint64_t address) {
  ib_uverbs_ioctl_hdr header;
  if (!copy_from_user(&header, address, sizeof(header))) return bad_address("ioctl", address);
  if (auto checked = check_header(header); !checked) return checked;
  const Method* const method = find_method(header.object_id, header.method_id);
  if (method == nullptr) {
    return refuse(EPROTONOSUPPORT, fmt::format("object {} has no method {}, as with Linux's rxe",
                                               header.object_id, header.method_id));
  }
  Attributes attributes;
  auto done = attributes.take(method->attributes, address + offsetof(ib_uverbs_ioctl_hdr, attrs),
                              header.num_attrs);
  if (done) done = method->handler(context, attributes);
  if (done) done = attributes.note_driver_output();
  if (!done) return tl::unexpected(about(method->name, std::move(done).error()));
  return done;
}

}  // namespace urxe::verbs::uverbs
