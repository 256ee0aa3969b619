// Which objects still need which: a protection domain with memory regions cannot be destroyed.
#pragma once

#include <cstdint>
#include <utility>

namespace urxe::emulator {

// The base of an object that others refer to. Not thread-safe: the device's lock is held.
class Shared {
 public:
  Shared() = default;
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  [[nodiscard]] bool in_use() const { return users_ != 0; }
  [[nodiscard]] std::uint32_t users() const { return users_; }

 protected:
  ~Shared() = default;

 private:
  template <typename T>
  friend class Use;
  std::uint32_t users_ = 0;
};

// Holds an object in use for as long as it lives. May hold nothing.
template <typename T>
class Use {
 public:
  Use() = default;
  explicit Use(T* object) : object_(object) {
    if (object_ != nullptr) ++object_->users_;
  }
  explicit Use(T& object) : Use(&object) {}
  Use(Use&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Use& operator=(Use&& other) noexcept {
    if (this != &other) {
      release();
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  ~Use() { release(); }

  [[nodiscard]] T* get() const { return object_; }  // as smart pointers call it
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void release() {
    if (object_ != nullptr) --object_->users_;
    object_ = nullptr;
  }
  T* object_ = nullptr;
};

}  // namespace urxe::emulator
