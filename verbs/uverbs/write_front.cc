#include "verbs/uverbs/write_front.h"

namespace urxe::verbs::uverbs {
namespace {

constexpr std::size_t kWord = 4;
constexpr std::size_t kExtendedWord = 8;

tl::unexpected<Refusal> too_short(const CommandEntry& entry, const char* what, std::size_t size,
                                  std::size_t needed) {
  return refuse(ENOSPC, fmt::format("{}: the {} has {} bytes, at least {} are needed", entry.name,
                                    what, size, needed));
}

tl::unexpected<Refusal> contradiction(const CommandEntry& entry) {
  return refuse(EINVAL, fmt::format("{}: the header contradicts itself or the length that was "
                                    "written",
                                    entry.name));
}

Outcome<WrittenCommand> decode_plain(const CommandEntry& entry, const ib_uverbs_cmd_hdr& header,
                                     UserBuffer body) {
  if (header.in_words * kWord != sizeof(header) + body.size) return contradiction(entry);
  if (body.size < entry.request_size) {
    return too_short(entry, "request", body.size, entry.request_size);
  }
  const std::size_t out_size = header.out_words * kWord;
  if (out_size < entry.response_size) {
    return too_short(entry, "response", out_size, entry.response_size);
  }
  Command command{.in = body, .out = {}, .driver = {}};
  if (entry.has_driver_data) {
    command.driver.in = body.behind(entry.request_size);
    command.in.size = entry.request_size;
  }
  if (!entry.has_response) return WrittenCommand{&entry, command};
  std::uint64_t response = 0;
  if (!copy_from_user(&response, body.address, sizeof(response))) {
    return bad_address("request", body.address);
  }
  command.out = {response, out_size};
  if (entry.has_driver_data) {
    command.driver.out = command.out.behind(entry.response_size);
    command.out.size = entry.response_size;
  }
  return WrittenCommand{&entry, command};
}

Outcome<WrittenCommand> decode_extended(const CommandEntry& entry, const ib_uverbs_cmd_hdr& header,
                                        UserBuffer rest) {
  ib_uverbs_ex_cmd_hdr extended{};
  if (rest.size < sizeof(extended)) return contradiction(entry);
  if (!copy_from_user(&extended, rest.address, sizeof(extended))) {
    return bad_address("request", rest.address);
  }
  const UserBuffer body = rest.behind(sizeof(extended));
  const std::size_t in_size = header.in_words * kExtendedWord;
  const std::size_t out_size = header.out_words * kExtendedWord;
  const std::size_t driver_in_size = extended.provider_in_words * kExtendedWord;
  const std::size_t driver_out_size = extended.provider_out_words * kExtendedWord;
  if (in_size + driver_in_size != body.size) return contradiction(entry);
  if (in_size < entry.request_size) {
    return too_short(entry, "request", in_size, entry.request_size);
  }
  if (extended.cmd_hdr_reserved != 0) return contradiction(entry);
  if ((extended.response != 0) != (out_size + driver_out_size != 0)) return contradiction(entry);
  if (extended.response != 0 && out_size < entry.response_size) {
    return too_short(entry, "response", out_size, entry.response_size);
  }
  return WrittenCommand{&entry,
                        {.in = {body.address, in_size},
                         .out = {extended.response, out_size},
                         .driver = {.in = {body.address + in_size, driver_in_size},
                                    .out = {extended.response + out_size, driver_out_size}}}};
}

}  // namespace

Outcome<WrittenCommand> decode_write(std::uint64_t data, std::size_t size) {
  ib_uverbs_cmd_hdr header{};
  if (size < sizeof(header)) {
    return refuse(EINVAL, fmt::format("{} bytes are not a command", size));
  }
  if (!copy_from_user(&header, data, sizeof(header))) return bad_address("command", data);
  const auto entry = find_command(header.command);
  if (!entry) return tl::unexpected(entry.error());
  const UserBuffer rest = UserBuffer{data, size}.behind(sizeof(header));
  return (*entry)->is_extended ? decode_extended(**entry, header, rest)
                               : decode_plain(**entry, header, rest);
}

}  // namespace urxe::verbs::uverbs
