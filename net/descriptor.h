// A file descriptor with an owner.
#pragma once

#include <memory>
#include <utility>

#include <unistd.h>

namespace urxe::net {

// Who keeps a descriptor's number, where that is not left to Descriptor: in a program that does not
// know of our descriptors the runtime protects them, and their numbers may change.
class DescriptorKeeper {
 public:
  virtual ~DescriptorKeeper() = default;  // closes it
  [[nodiscard]] virtual int number() const = 0;
};

// Takes a new descriptor over. nullptr stands for keeping the number as it is.
using KeepDescriptor = std::unique_ptr<DescriptorKeeper> (*)(int number);

// Closes the descriptor when it dies. Ask for number() each time and do not keep it.
class Descriptor {
 public:
  Descriptor() = default;
  // `number` may be -1: what a failed call returned.
  explicit Descriptor(int number, KeepDescriptor keep = nullptr) {
    if (number >= 0 && keep != nullptr) {
      keeper_ = keep(number);
    } else {
      number_ = number;
    }
  }
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), keeper_(std::move(other.keeper_)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(keeper_, other.keeper_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int number() const { return keeper_ ? keeper_->number() : number_; }
  [[nodiscard]] bool is_open() const { return number() >= 0; }

 private:
  int number_ = -1;
  std::unique_ptr<DescriptorKeeper> keeper_;
};

}  // namespace urxe::net
