// Objects that live until they are taken out by address.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>

namespace urxe::emulator {

template <typename T>
class OwnedSet {
 public:
  template <typename... Args>
  T& emplace(Args&&... args) {
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T& added = *object;
    objects_.emplace(&added, std::move(object));
    return added;
  }
  void erase(T& object) { objects_.erase(&object); }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  void clear() { objects_.clear(); }

 private:
  std::unordered_map<T*, std::unique_ptr<T>> objects_;
};

}  // namespace urxe::emulator
