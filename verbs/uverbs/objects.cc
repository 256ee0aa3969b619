#include "verbs/uverbs/objects.h"

namespace urxe::verbs::uverbs {

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::pd:
      return "protection domain";
    case Kind::mr:
      return "memory region";
    case Kind::mw:
      return "memory window";
    case Kind::cq:
      return "completion queue";
    case Kind::qp:
      return "queue pair";
    case Kind::srq:
      return "shared receive queue";
    case Kind::ah:
      return "address handle";
  }
  return "object";
}

void ObjectTable::insert(std::unique_ptr<Object> object) {
  while (lowest_free_ < objects_.size() && objects_[lowest_free_] != nullptr) ++lowest_free_;
  if (lowest_free_ == objects_.size()) objects_.emplace_back();
  object->handle = static_cast<std::uint32_t>(lowest_free_);
  objects_[lowest_free_++] = std::move(object);
}

void ObjectTable::erase(std::uint32_t handle) {
  objects_[handle].reset();
  lowest_free_ = std::min<std::size_t>(lowest_free_, handle);
}

tl::unexpected<Refusal> ObjectTable::unknown(std::uint32_t handle, Kind wanted,
                                             const Object* found) {
  if (found == nullptr) {
    return refuse(ENOENT, fmt::format("there is no {} with handle {}", to_string(wanted), handle));
  }
  return refuse(EINVAL, fmt::format("handle {} is a {}, not a {}", handle, to_string(found->kind),
                                    to_string(wanted)));
}

}  // namespace urxe::verbs::uverbs
