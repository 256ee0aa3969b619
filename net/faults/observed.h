// A packet as fault rules see it.
#pragma once

#include <cstdint>
#include <optional>

#include "net/faults/rule.h"
#include "net/wire/address.h"
#include "net/wire/headers.h"
#include "net/wire/opcode.h"

namespace urxe::net {

struct Observed {
  Direction direction{};
  wire::IpAddress peer;  // the other end
  wire::Bth bth;
  const wire::OpcodeInfo* info = nullptr;  // nullptr if the opcode is unknown
  std::optional<wire::Syndrome> syndrome;
  std::uint32_t read_length = 0;  // of a READ request
  std::size_t size = 0;           // bytes, BTH to ICRC

  [[nodiscard]] bool is_response() const { return info != nullptr && info->is_response(); }
};

// `bytes`: BTH to pad, of `size` with the ICRC; nothing if they are too short for a BTH.
[[nodiscard]] std::optional<Observed> observe(Direction direction, const wire::IpAddress& peer,
                                              wire::Bytes bytes);

}  // namespace urxe::net
