// One command of the write() ABI, however it came: by write(), or wrapped in an ioctl.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <fmt/core.h>
#include <rdma/ib_user_verbs.h>

#include "verbs/uverbs/context.h"
#include "verbs/uverbs/refusal.h"
#include "verbs/uverbs/user_memory.h"

namespace urxe::verbs::uverbs {

[[nodiscard]] inline tl::unexpected<Refusal> bad_address(const char* what, std::uint64_t address) {
  return refuse(EFAULT, fmt::format("the {} at {:#x} is not memory of this process that may be "
                                    "used so",
                                    what, address));
}

// What librxe adds to commands (rdma_user_rxe.h), whichever front end they came through.
struct DriverData {
  UserBuffer in;
  UserBuffer out;

  // As much of `value` as the program has room for.
  template <typename T>
  Status reply(const T& value) const {
    const std::size_t size = std::min(out.size, sizeof(T));
    if (!copy_to_user(out.address, &value, size)) return bad_address("response", out.address);
    return {};
  }
};

struct Command {
  UserBuffer in;
  UserBuffer out;
  DriverData driver;
  // Where the program's copy of the ioctl's attribute takes a note that there is a response; 0: it
  // came by write().
  std::uint64_t output_flags = 0;

  // Reads the request. What an older program does not send is zero; what a newer one sends besides
  // must be. (Not a value that is returned: these structures end in arrays of no length.)
  template <typename T>
  [[nodiscard]] Status read(T& request) const {
    if (!copy_from_user(&request, in.address, std::min(in.size, sizeof(T)))) {
      return bad_address("request", in.address);
    }
    const auto cleared = is_cleared(in.behind(sizeof(T)));
    if (!cleared) return bad_address("request", in.address);
    if (!*cleared) {
      return refuse(EOPNOTSUPP, fmt::format("the request has {} bytes, and those behind the first "
                                            "{} are not zero",
                                            in.size, sizeof(T)));
    }
    return {};
  }

  // The response, cut to what the program has room for; what it has room for besides is cleared.
  template <typename T>
  Status reply(const T& response) const {
    const bool written = copy_to_user(out.address, &response, std::min(out.size, sizeof(T))) &&
                         clear_user(out.behind(sizeof(T)));
    if (!written) return bad_address("response", out.address);
    return note_output();
  }
  template <typename T>
  [[nodiscard]] std::uint32_t response_length() const {
    return static_cast<std::uint32_t>(std::min(out.size, sizeof(T)));
  }

 private:
  Status note_output() const;
};

// Handlers run with the device's lock held.
using CommandHandler = Status (*)(Context&, const Command&);

}  // namespace urxe::verbs::uverbs
