// The write() front end: a command begins with its header.
#pragma once

#include <cstddef>

#include "verbs/uverbs/command_table.h"

namespace urxe::verbs::uverbs {

// A command found in what the program wrote, checked as the kernel does (verify_hdr of its
// uverbs_main.c).
struct WrittenCommand {
  const CommandEntry* entry = nullptr;
  Command command;
};
[[nodiscard]] Outcome<WrittenCommand> decode_write(std::uint64_t data, std::size_t size);

}  // namespace urxe::verbs::uverbs
