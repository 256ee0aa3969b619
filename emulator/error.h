// How an operation on the device fails: a kind, from which verbs/ chooses the errno, and a sentence
// with the numbers for whoever asks to be told.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace urxe::emulator {

enum class Failure : std::uint8_t {
  invalid,        // an argument or a state that the rules forbid: EINVAL
  no_memory,      // a limit of the device or of an object is reached: ENOMEM
  in_use,         // others refer to the object: EBUSY
  not_found,      // no such object: ENOENT
  not_supported,  // the device cannot do that: EOPNOTSUPP
  not_permitted,  // EPERM
};

struct Error {
  Failure failure;
  std::string sentence;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Failure failure, std::string sentence) {
  return tl::unexpected(Error{failure, std::move(sentence)});
}

}  // namespace urxe::emulator
