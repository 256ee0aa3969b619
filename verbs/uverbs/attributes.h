// The attributes of one ioctl: checked against what its method declares.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "verbs/uverbs/command.h"

namespace urxe::verbs::uverbs {

enum class AttributeType : std::uint8_t {
  in,      // bytes for us: by address, or in place if they are eight at most
  out,     // room for bytes of ours
  handle,  // of an object that exists, or that is to be made
  fd,      // the same for a descriptor
};

// What a method says of one of its attributes.
struct AttributeSpec {
  std::uint16_t id;
  AttributeType type;
  bool mandatory;
  std::uint16_t min_size = 0;
  std::uint16_t max_size = 0;
  bool zeros_may_follow = false;  // an `in` may be longer than max_size, if the rest is zero
};

inline constexpr std::uint16_t kAnySize = std::numeric_limits<std::uint16_t>::max();
inline constexpr bool kMandatory = true;
inline constexpr bool kOptional = false;

// The forms of the kernel's uverbs_ioctl.h.
template <typename T>
constexpr AttributeSpec value_in(std::uint16_t id, bool mandatory) {
  return {id, AttributeType::in, mandatory, sizeof(T), sizeof(T)};
}
// A constant, whatever its type, has eight bytes; flags have four or eight.
constexpr AttributeSpec constant_in(std::uint16_t id, bool mandatory) {
  return {id, AttributeType::in, mandatory, 8, 8};
}
constexpr AttributeSpec flags_in(std::uint16_t id, bool mandatory) {
  return {id, AttributeType::in, mandatory, 4, 8};
}
template <typename T>
constexpr AttributeSpec value_out(std::uint16_t id, bool mandatory) {
  return {id, AttributeType::out, mandatory, sizeof(T), sizeof(T)};
}
// A structure that may grow: both sides know its beginning, `min_size`.
template <typename T>
constexpr AttributeSpec struct_in(std::uint16_t id, bool mandatory, std::uint16_t min_size) {
  return {id, AttributeType::in, mandatory, min_size, sizeof(T), true};
}
template <typename T>
constexpr AttributeSpec struct_out(std::uint16_t id, bool mandatory, std::uint16_t min_size) {
  return {id, AttributeType::out, mandatory, min_size, sizeof(T), true};
}
constexpr AttributeSpec bytes_in(std::uint16_t id, bool mandatory, std::uint16_t min_size = 0) {
  return {id, AttributeType::in, mandatory, min_size, kAnySize};
}
constexpr AttributeSpec bytes_out(std::uint16_t id, bool mandatory, std::uint16_t min_size = 0) {
  return {id, AttributeType::out, mandatory, min_size, kAnySize};
}
constexpr AttributeSpec handle(std::uint16_t id, bool mandatory = kMandatory) {
  return {id, AttributeType::handle, mandatory};
}
constexpr AttributeSpec descriptor(std::uint16_t id, bool mandatory = kMandatory) {
  return {id, AttributeType::fd, mandatory};
}

class Attributes {
 public:
  // Takes the attributes that stand at `address`. As the kernel: an unknown one is EPROTONOSUPPORT
  // if it says that it is mandatory, and is passed over otherwise.
  Status take(std::span<const AttributeSpec> specs, std::uint64_t address, std::size_t count);

  [[nodiscard]] bool has(std::uint16_t id) const { return find(id) != nullptr; }

  // --- what the program says

  // A value_in, or as much of a struct_in as there is.
  template <typename T>
  [[nodiscard]] Outcome<T> value(std::uint16_t id) const {
    T value{};
    if (auto copied = copy(id, &value, sizeof(value)); !copied) {
      return tl::unexpected(copied.error());
    }
    return value;
  }
  // A constant_in, at most `max`.
  [[nodiscard]] Outcome<std::uint64_t> constant(std::uint16_t id, std::uint64_t max) const;
  // 0 if there are none.
  [[nodiscard]] Outcome<std::uint32_t> flags(std::uint16_t id, std::uint32_t allowed) const;
  [[nodiscard]] Outcome<std::uint32_t> handle(std::uint16_t id) const;
  [[nodiscard]] int descriptor(std::uint16_t id) const;
  // Empty if there is none.
  [[nodiscard]] UserBuffer buffer(std::uint16_t id) const;
  [[nodiscard]] DriverData driver() const {
    return {.in = buffer(UVERBS_ATTR_UHW_IN), .out = buffer(UVERBS_ATTR_UHW_OUT)};
  }
  // Where the program's copy of an attribute has its flags; 0 if it is not there.
  [[nodiscard]] std::uint64_t flags_address(std::uint16_t id) const;

  // --- what we say. Attributes that are not there are passed over.

  template <typename T>
  Status put(std::uint16_t id, const T& value) const {
    return put_bytes(id, &value, sizeof(value));
  }
  // Clears what the program has room for besides.
  template <typename T>
  Status put_struct(std::uint16_t id, const T& value) const {
    if (!clear_user(buffer(id).behind(sizeof(value)))) return bad_address("attribute", 0);
    return put_bytes(id, &value, sizeof(value));
  }
  Status put_bytes(std::uint16_t id, const void* bytes, std::size_t size) const;
  // The handle or descriptor of what was made.
  Status put_new(std::uint16_t id, std::int64_t value) const;
  // The driver's response was written.
  Status note_driver_output() const { return note_output(UVERBS_ATTR_UHW_OUT); }
  Status note_output(std::uint16_t id) const;

 private:
  struct Attribute {
    ib_uverbs_attr attribute;
    std::uint64_t address;  // of the program's copy
    AttributeType type;
    // Its bytes stand in the attribute itself.
    [[nodiscard]] bool is_inline() const {
      return type == AttributeType::in && attribute.len <= sizeof(attribute.data);
    }
  };
  static constexpr std::size_t kMaxAttributes = 24;  // more than any method has

  [[nodiscard]] const Attribute* find(std::uint16_t id) const;
  [[nodiscard]] Status copy(std::uint16_t id, void* to, std::size_t size) const;
  Status check(const AttributeSpec& spec, const Attribute& attribute) const;
  Status check_bytes(const AttributeSpec& spec, const Attribute& attribute) const;

  std::array<Attribute, kMaxAttributes> attributes_;
  std::size_t count_ = 0;
};

}  // namespace urxe::verbs::uverbs
