#include "verbs/uverbs/attributes.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "emulator/assert.h"

namespace urxe::verbs::uverbs {
namespace {

const AttributeSpec* find_spec(std::span<const AttributeSpec> specs, std::uint16_t id) {
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [id](const AttributeSpec& spec) { return spec.id == id; });
  return found == specs.end() ? nullptr : &*found;
}

}  // namespace

// --- taking them

Status Attributes::take(std::span<const AttributeSpec> specs, std::uint64_t address,
                        std::size_t count) {
  URXE_ASSERT(specs.size() <= kMaxAttributes);
  for (std::size_t i = 0; i < count; ++i, address += sizeof(ib_uverbs_attr)) {
    Attribute attribute{.attribute = {}, .address = address, .type = {}};
    if (!copy_from_user(&attribute.attribute, address, sizeof(ib_uverbs_attr))) {
      return bad_address("attribute", address);
    }
    const std::uint16_t id = attribute.attribute.attr_id;
    const AttributeSpec* spec = find_spec(specs, id);
    if (spec == nullptr) {
      if ((attribute.attribute.flags & UVERBS_ATTR_F_MANDATORY) == 0) continue;
      return refuse(EPROTONOSUPPORT,
                    fmt::format("attribute {:#x} is not known, and said to be mandatory", id));
    }
    if (has(id)) return refuse(EINVAL, fmt::format("attribute {:#x} comes twice", id));
    attribute.type = spec->type;
    if (auto checked = check(*spec, attribute); !checked) return checked;
    attributes_[count_++] = attribute;
  }
  for (const AttributeSpec& spec : specs) {
    if (!spec.mandatory || has(spec.id)) continue;
    return refuse(EINVAL, fmt::format("attribute {:#x} is missing", spec.id));
  }
  return {};
}

Status Attributes::check(const AttributeSpec& spec, const Attribute& attribute) const {
  if (attribute.attribute.attr_data.reserved != 0) {
    return refuse(EINVAL, fmt::format("attribute {:#x}: reserved is not 0", spec.id));
  }
  if (spec.type == AttributeType::in || spec.type == AttributeType::out) {
    return check_bytes(spec, attribute);
  }
  if (attribute.attribute.len == 0) return {};
  return refuse(EINVAL,
                fmt::format("attribute {:#x}: handles and descriptors have no length", spec.id));
}

Status Attributes::check_bytes(const AttributeSpec& spec, const Attribute& attribute) const {
  const std::size_t size = attribute.attribute.len;
  const bool too_long = size > spec.max_size && !spec.zeros_may_follow;
  if (size < spec.min_size || too_long) {
    return refuse(EINVAL, fmt::format("attribute {:#x} has {} bytes, expected are {} to {}",
                                      spec.id, size, spec.min_size, spec.max_size));
  }
  if (spec.type != AttributeType::in || size <= spec.max_size) return {};
  // Longer than eight bytes: no structure that may grow is shorter.
  const auto cleared = is_cleared(UserBuffer{attribute.attribute.data, size}.behind(spec.max_size));
  if (!cleared) return bad_address("attribute", attribute.attribute.data);
  if (*cleared) return {};
  return refuse(EOPNOTSUPP, fmt::format("attribute {:#x} has {} bytes, and those behind the first "
                                        "{} are not zero",
                                        spec.id, size, spec.max_size));
}

const Attributes::Attribute* Attributes::find(std::uint16_t id) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (attributes_[i].attribute.attr_id == id) return &attributes_[i];
  }
  return nullptr;
}

// --- reading them

Status Attributes::copy(std::uint16_t id, void* to, std::size_t size) const {
  const Attribute* const found = find(id);
  if (found == nullptr) return refuse(ENOENT, fmt::format("attribute {:#x} is missing", id));
  const std::size_t length = std::min<std::size_t>(size, found->attribute.len);
  if (found->is_inline()) {
    std::memcpy(to, &found->attribute.data, length);
  } else if (!copy_from_user(to, found->attribute.data, length)) {
    return bad_address("attribute", found->attribute.data);
  }
  return {};
}

Outcome<std::uint64_t> Attributes::constant(std::uint16_t id, std::uint64_t max) const {
  const auto found = value<std::uint64_t>(id);
  if (!found || *found <= max) return found;
  return refuse(EINVAL,
                fmt::format("attribute {:#x} is {}, at most {} is possible", id, *found, max));
}

Outcome<std::uint32_t> Attributes::flags(std::uint16_t id, std::uint32_t allowed) const {
  const Attribute* const found = find(id);
  if (found == nullptr) return 0;
  const std::size_t size = found->attribute.len;
  if (size != sizeof(std::uint32_t) && size != sizeof(std::uint64_t)) {
    return refuse(EINVAL,
                  fmt::format("attribute {:#x}: flags have 4 or 8 bytes, not {}", id, size));
  }
  const auto flags = value<std::uint64_t>(id);
  if (!flags) return tl::unexpected(flags.error());
  if ((*flags & ~std::uint64_t{allowed}) != 0) {
    return refuse(EINVAL, fmt::format("attribute {:#x}: of the flags {:#x} only {:#x} are known",
                                      id, *flags, allowed));
  }
  return static_cast<std::uint32_t>(*flags);
}

Outcome<std::uint32_t> Attributes::handle(std::uint16_t id) const {
  const Attribute* const found = find(id);
  if (found == nullptr) return refuse(ENOENT, fmt::format("attribute {:#x} is missing", id));
  const std::uint64_t data = found->attribute.data;
  if (data > std::numeric_limits<std::uint32_t>::max()) {
    return refuse(found->attribute.data_s64 < 0 ? EINVAL : ENOENT,
                  fmt::format("{:#x} is not a handle", data));
  }
  return static_cast<std::uint32_t>(data);
}

int Attributes::descriptor(std::uint16_t id) const {
  const Attribute* const found = find(id);
  return found == nullptr ? -1 : static_cast<int>(found->attribute.data_s64);
}

UserBuffer Attributes::buffer(std::uint16_t id) const {
  const Attribute* const found = find(id);
  if (found == nullptr) return {};
  const std::uint64_t in_place = found->address + offsetof(ib_uverbs_attr, data);
  return {found->is_inline() ? in_place : found->attribute.data, found->attribute.len};
}

std::uint64_t Attributes::flags_address(std::uint16_t id) const {
  const Attribute* const found = find(id);
  return found == nullptr ? 0 : found->address + offsetof(ib_uverbs_attr, flags);
}

// --- answering

Status Attributes::put_bytes(std::uint16_t id, const void* bytes, std::size_t size) const {
  const Attribute* const found = find(id);
  if (found == nullptr) return {};
  const std::size_t length = std::min<std::size_t>(size, found->attribute.len);
  if (!copy_to_user(found->attribute.data, bytes, length)) {
    return bad_address("attribute", found->attribute.data);
  }
  return note_output(id);
}

Status Attributes::put_new(std::uint16_t id, std::int64_t value) const {
  const Attribute* const found = find(id);
  if (found == nullptr) return {};
  const std::uint64_t in_place = found->address + offsetof(ib_uverbs_attr, data);
  if (!copy_to_user(in_place, &value, sizeof(value))) return bad_address("attribute", in_place);
  return {};
}

Status Attributes::note_output(std::uint16_t id) const {
  const Attribute* const found = find(id);
  if (found == nullptr) return {};
  const std::uint16_t flags = found->attribute.flags | UVERBS_ATTR_F_VALID_OUTPUT;
  const std::uint64_t in_place = found->address + offsetof(ib_uverbs_attr, flags);
  if (!copy_to_user(in_place, &flags, sizeof(flags))) return bad_address("attribute", in_place);
  return {};
}

}  // namespace urxe::verbs::uverbs
