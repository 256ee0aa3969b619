// The methods of the ioctl() ABI: what attributes they take, and who handles them.
#pragma once

#include <span>

#include "verbs/uverbs/attributes.h"

namespace urxe::verbs::uverbs {

// Methods run with the device's lock held.
using MethodHandler = Status (*)(Context&, const Attributes&);

struct Method {
  std::uint16_t object;
  std::uint16_t id;
  const char* name;
  MethodHandler handler;
  std::span<const AttributeSpec> attributes;
};

// Null if rxe has no such method.
[[nodiscard]] const Method* find_method(std::uint16_t object, std::uint16_t id);

// By file.
[[nodiscard]] std::span<const Method> device_methods();
[[nodiscard]] std::span<const Method> memory_methods();
[[nodiscard]] std::span<const Method> queue_methods();

}  // namespace urxe::verbs::uverbs
