#include "verbs/uverbs/objects.h"

namespace urxe::verbs::uverbs {

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::pd:
      return "a protection domain";
    case Kind::mr:
      return "a memory region";
    case Kind::mw:
      return "a memory window";
    case Kind::cq:
      return "a completion queue";
    case Kind::qp:
      return "a queue pair";
    case Kind::srq:
      return "a shared receive queue";
    case Kind::ah:
      return "an address handle";
  }
  return "an object";
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
    return refuse(ENOENT, fmt::format("handle {} is no object of this file, wanted is {}", handle,
                                      to_string(wanted)));
  }
  return refuse(EINVAL, fmt::format("handle {} is {}, not {}", handle, to_string(found->kind),
                                    to_string(wanted)));
}

}  // namespace urxe::verbs::uverbs
