// The device's doors to a program, opened on vectors: send and receive requests, completions,
// memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "emulator/work.h"

namespace urxe::test {

// A send request whose lists live as long as the queue needs them.
struct OwnedSend {
  emulator::SendRequest request;
  std::vector<emulator::Sge> sges;
  std::vector<std::uint8_t> inline_data;
};

class SendDouble final : public emulator::SendSource {
 public:
  void post(OwnedSend send) { posted_.push_back(std::move(send)); }
  bool take(emulator::SendRequest& request) override {
    if (taken_ == posted_.size()) return false;
    OwnedSend& send = posted_[taken_++];
    request = send.request;
    request.sges = send.sges;
    request.inline_data = send.inline_data;
    return true;
  }
  void retire(std::uint32_t count) override {
    posted_.erase(posted_.begin(), posted_.begin() + count);
    taken_ -= count;
  }
  void clear() override {
    posted_.clear();
    taken_ = 0;
  }
  [[nodiscard]] std::size_t held() const { return posted_.size(); }

 private:
  std::deque<OwnedSend> posted_;
  std::size_t taken_ = 0;
};

class ReceiveDouble final : public emulator::ReceiveSource {
 public:
  void post(std::uint64_t wr_id, const std::vector<emulator::Sge>& sges) {
    emulator::ReceiveRequest& request = posted_.emplace_back();
    request.wr_id = wr_id;
    for (const emulator::Sge& sge : sges) {
      request.sges.at(request.sge_count++) = sge;
      request.length += sge.length;
    }
  }
  void post(const emulator::ReceiveRequest& request) { posted_.push_back(request); }
  bool take(emulator::ReceiveRequest& request) override {
    if (posted_.empty()) return false;
    request = posted_.front();
    posted_.pop_front();
    return true;
  }
  [[nodiscard]] std::uint32_t posted() const override {
    return static_cast<std::uint32_t>(posted_.size());
  }
  void clear() override { posted_.clear(); }

 private:
  std::deque<emulator::ReceiveRequest> posted_;
};

class CompletionDouble final : public emulator::CompletionSink {
 public:
  explicit CompletionDouble(std::size_t capacity = SIZE_MAX) : capacity_(capacity) {}
  bool push(const emulator::Completion& completion) override {
    if (completions.size() == capacity_) return false;
    completions.push_back(completion);
    if (after_push) after_push();
    return true;
  }
  std::vector<emulator::Completion> completions;
  std::function<void()> after_push;  // what a program does that polls at once

 private:
  std::size_t capacity_;
};

// Sees what the device does to memory, after it was done.
class MemoryObserver {
 public:
  struct Atomic {
    std::uint64_t address;
    std::uint64_t operand;  // what to add, or what to swap in
    std::uint64_t old_value;
    std::uint64_t new_value;
  };
  // An access that failed, for the memory was not there.
  enum class Kind : std::uint8_t { read, write, atomic };
  struct Refusal {
    Kind kind{};
    std::uint64_t address = 0;
    std::size_t size = 0;
    std::uint64_t operand = 0;  // of an atomic
  };
  virtual void on_read(std::uint64_t from, std::size_t size) = 0;
  virtual void on_write(std::uint64_t to, std::span<const std::uint8_t> data) = 0;
  virtual void on_atomic(const Atomic& atomic) = 0;
  virtual void on_refused(const Refusal& refusal) = 0;

 protected:
  ~MemoryObserver() = default;
};

// Memory made of blocks. An access outside every block is refused as unmapped memory would be, and
// remembered: the device must not make one by itself.
class MemoryDouble final : public emulator::ProgramMemory {
 public:
  // A block at a made-up address, far from every other.
  std::uint64_t map(std::size_t size) {
    const std::uint64_t address = next_;
    next_ += (size + 0x1FFFF) & ~std::uint64_t{0xFFFF};
    blocks_[address].resize(size);
    return address;
  }
  void unmap(std::uint64_t address) { blocks_.erase(address); }
  // What a program's munmap or PROT_NONE does to a part of a block: the device may not access it,
  // though the bytes are still there for whoever looks with at().
  void take_away(std::uint64_t address, std::size_t size) { holes_[address] = size; }
  void bring_back(std::uint64_t address) { holes_.erase(address); }
  [[nodiscard]] std::uint8_t* at(std::uint64_t address, std::size_t size) {
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) return nullptr;
    --block;
    const std::uint64_t offset = address - block->first;
    if (offset > block->second.size() || size > block->second.size() - offset) return nullptr;
    return block->second.data() + offset;
  }

  bool read(std::uint64_t from, std::span<std::uint8_t> to) override {
    const std::uint8_t* data = checked({MemoryObserver::Kind::read, from, to.size()});
    if (data != nullptr && !to.empty()) std::memcpy(to.data(), data, to.size());
    if (data != nullptr && observer != nullptr) observer->on_read(from, to.size());
    return data != nullptr;
  }
  bool write(std::uint64_t to, std::span<const std::uint8_t> from) override {
    std::uint8_t* data = checked({MemoryObserver::Kind::write, to, from.size()});
    if (data != nullptr && !from.empty()) std::memcpy(data, from.data(), from.size());
    if (data != nullptr && observer != nullptr) observer->on_write(to, from);
    return data != nullptr;
  }
  std::optional<std::uint64_t> compare_swap(std::uint64_t address, std::uint64_t compare,
                                            std::uint64_t swap) override {
    return update(address, swap, [&](std::uint64_t old) { return old == compare ? swap : old; });
  }
  std::optional<std::uint64_t> fetch_add(std::uint64_t address, std::uint64_t add) override {
    return update(address, add, [&](std::uint64_t old) { return old + add; });
  }
  bool store(std::uint64_t address, std::uint64_t value) override {
    return update(address, value, [&](std::uint64_t) { return value; }).has_value();
  }

  std::uint64_t faults = 0;  // accesses outside every block
  MemoryObserver* observer = nullptr;

 private:
  std::uint8_t* checked(const MemoryObserver::Refusal& access) {
    std::uint8_t* data = at(access.address, access.size);
    if (data == nullptr) ++faults;
    if (data != nullptr && !touches_hole(access.address, access.size)) return data;
    if (observer != nullptr) observer->on_refused(access);
    return nullptr;
  }
  [[nodiscard]] bool touches_hole(std::uint64_t address, std::size_t size) const {
    return std::any_of(holes_.begin(), holes_.end(), [&](const auto& hole) {
      return address < hole.first + hole.second && hole.first < address + size;
    });
  }
  template <typename Update>
  std::optional<std::uint64_t> update(std::uint64_t address, std::uint64_t operand, Update next) {
    std::uint8_t* data =
        checked({MemoryObserver::Kind::atomic, address, sizeof(std::uint64_t), operand});
    if (data == nullptr) return std::nullopt;
    std::uint64_t old = 0;
    std::memcpy(&old, data, sizeof(old));
    const std::uint64_t value = next(old);
    std::memcpy(data, &value, sizeof(value));
    if (observer != nullptr) observer->on_atomic({address, operand, old, value});
    return old;
  }

  std::uint64_t next_ = 0x10000000;
  std::map<std::uint64_t, std::vector<std::uint8_t>> blocks_;
  std::map<std::uint64_t, std::size_t> holes_;
};

}  // namespace urxe::test
