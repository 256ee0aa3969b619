// What the golden files are made of: every opcode, over both IP versions, with every pad.
#pragma once

#include <string>
#include <vector>

#include "net/wire/opcode.h"
#include "tests/golden/dissection.h"

namespace urxe::golden {

// The file's name: the opcode's, in small letters.
[[nodiscard]] std::string file_name(const wire::OpcodeInfo& info);

// All packets of one opcode's file, built by our builder. The same ones on every call.
[[nodiscard]] std::vector<Block> samples(const wire::OpcodeInfo& info);

// The whole file.
[[nodiscard]] std::string file_text(const wire::OpcodeInfo& info);

}  // namespace urxe::golden
