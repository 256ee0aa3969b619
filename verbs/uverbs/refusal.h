// Why a command is refused: the errno that the program gets, and a sentence for the log.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include <tl/expected.hpp>

#include "emulator/error.h"

namespace urxe::verbs::uverbs {

struct Refusal {
  int error;             // a positive errno
  std::string sentence;  // empty: nobody need know
};

template <typename T>
using Outcome = tl::expected<T, Refusal>;
using Status = Outcome<void>;

inline tl::unexpected<Refusal> refuse(int error, std::string sentence) {
  return tl::unexpected(Refusal{error, std::move(sentence)});
}

// For what programs do as a matter of course, to find out what there is.
inline tl::unexpected<Refusal> refuse_quietly(int error) { return refuse(error, {}); }

// The same refusal, and of what.
inline Refusal about(const char* what, Refusal refusal) {
  if (!refusal.sentence.empty()) refusal.sentence = what + (": " + refusal.sentence);
  return refusal;
}

[[nodiscard]] inline int errno_of(emulator::Failure failure) {
  switch (failure) {
    case emulator::Failure::invalid:
      return EINVAL;
    case emulator::Failure::no_memory:
      return ENOMEM;
    case emulator::Failure::in_use:
      return EBUSY;
    case emulator::Failure::not_found:
      return ENOENT;
    case emulator::Failure::not_supported:
      return EOPNOTSUPP;
    case emulator::Failure::not_permitted:
      return EPERM;
  }
  return EINVAL;
}

inline tl::unexpected<Refusal> refuse(const emulator::Error& error) {
  return refuse(errno_of(error.failure), error.sentence);
}

}  // namespace urxe::verbs::uverbs
