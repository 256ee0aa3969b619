// Which of the process's descriptors are ours.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <sys/types.h>

#include "verbs/emulated_file.h"
#include "verbs/preload/own_mutex.h"

namespace urxe::verbs {

// Maps descriptors to what we have behind them. Three kinds of descriptor are not the program's
// own:
//   * emulated: opened by the program on a device node of ours; all dup'ed descriptors share one
//     EmulatedFile, which is destroyed when the last is closed and no call is in progress;
//   * private: opened by us for ourselves (PrivateDescriptor); the program must not close it;
//   * dead: emulated, but in a forked child of the process that opened it. Its file is never used
//     and never destroyed there.
//
// Any thread may call anything at any time; holds() and find() take no lock and allocate nothing,
// so they do in signal handlers and after vfork. A radix tree with room for every descriptor
// number; its nodes and the entries are allocated when needed and never freed, so that a reader can
// always follow a pointer. Has static storage duration: no constructor and no destructor runs.
class DescriptorTable {
 private:
  struct Entry;

 public:
  // Keeps a file alive while a call is in progress.
  class Reference {
   public:
    Reference() = default;
    Reference(Reference&& other) noexcept
        : table_(other.table_), entry_(std::exchange(other.entry_, nullptr)) {}
    Reference& operator=(Reference&& other) = delete;
    ~Reference() {
      if (entry_ != nullptr) table_->release(entry_);
    }

    [[nodiscard]] explicit operator bool() const { return entry_ != nullptr; }
    // Null for a private descriptor and a dead one.
    [[nodiscard]] EmulatedFile* file() const;
    // The st_rdev to show; also of a dead one. Not for private descriptors.
    [[nodiscard]] dev_t device_number() const;
    [[nodiscard]] bool is_private() const;
    // Whether `fd` is still open on the same file: it may have been closed by a system call that
    // does not pass through us, and its number given away again.
    [[nodiscard]] bool is_open_on(int fd) const;

   private:
    friend class DescriptorTable;
    Reference(DescriptorTable* table, Entry* entry) : table_(table), entry_(entry) {}

    DescriptorTable* table_ = nullptr;
    Entry* entry_ = nullptr;
  };

  constexpr DescriptorTable() = default;
  DescriptorTable(const DescriptorTable&) = delete;
  DescriptorTable& operator=(const DescriptorTable&) = delete;

  // False is certain. The fast way out of every entry point.
  [[nodiscard]] bool holds(int fd) const {
    if (count_.load(std::memory_order_relaxed) == 0) return false;
    const Slot* slot = find_slot(fd);
    return slot != nullptr && slot->load(std::memory_order_relaxed) != nullptr;
  }
  [[nodiscard]] Reference find(int fd);

  // `fd` is open on what backs `file`. False: no memory.
  bool insert(int fd, std::shared_ptr<EmulatedFile> file);
  // `number` holds a descriptor that is ours alone; remove() ends that. False: no memory.
  bool insert_private(std::atomic<int>& number);
  // After a dup: `to` is open on what `from` is open on, whatever it was before.
  void copy(int from, int to);
  // Forgets `fd`; to be called before it is closed.
  void remove(int fd);
  // Moves a private descriptor to another number, so that the program can have `fd`. False if
  // there is no other.
  [[nodiscard]] bool move_away(int fd);
  // The first descriptor in [first, last] that is ours; `last + 1` if there is none.
  [[nodiscard]] std::uint64_t next(std::uint64_t first, std::uint64_t last) const;

  // Whether this is the process whose table this is, and not its vfork child, which shares our
  // memory but has descriptors of its own. A system call.
  [[nodiscard]] bool is_own_process();
  // Around a fork. That a child is one is found out without them, too (clone, _Fork).
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  using Slot = std::atomic<Entry*>;
  static constexpr std::size_t kFanOut = 1024;
  static constexpr std::size_t kTopSize = 2048;  // descriptors have 31 bits
  using Leaf = std::array<Slot, kFanOut>;
  using Branch = std::array<std::atomic<Leaf*>, kFanOut>;

  [[nodiscard]] const Slot* find_slot(int fd) const;
  [[nodiscard]] Slot* find_slot(int fd) {
    return const_cast<Slot*>(std::as_const(*this).find_slot(fd));
  }
  Slot* make_slot(int fd);
  Entry* make_entry();
  void put(Slot& slot, Entry* entry);
  void release(Entry* entry);
  void retire(Entry* entry);
  void notice_fork();
  void watch_for_fork();

  std::atomic<std::uint32_t> count_{0};  // of slots in use
  std::array<std::atomic<Branch*>, kTopSize> top_{};

  // Reads 0 after a fork. Points into a page that the kernel clears in the child.
  std::atomic<std::atomic<int>*> fork_mark_{nullptr};
  std::atomic<std::uint32_t> epoch_{0};  // counts the forks from our ancestors to us
  std::atomic<int> owner_{0};            // process id

  OwnMutex mutex_;  // over the lists
  Entry* free_ = nullptr;
  Entry* dead_ = nullptr;
};

inline const DescriptorTable::Slot* DescriptorTable::find_slot(int fd) const {
  const auto number = static_cast<std::uint32_t>(fd);
  if (fd < 0) return nullptr;
  const Branch* branch = top_[number >> 20].load(std::memory_order_acquire);
  if (branch == nullptr) return nullptr;
  const Leaf* leaf = (*branch)[(number >> 10) % kFanOut].load(std::memory_order_acquire);
  return leaf == nullptr ? nullptr : &(*leaf)[number % kFanOut];
}

// The process's table.
extern DescriptorTable descriptors;

}  // namespace urxe::verbs
