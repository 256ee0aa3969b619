#include "verbs/preload/descriptor_table.h"

#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace urxe::verbs {
namespace {

constinit std::atomic<int> never_forked{1};

// Not through the C library's fstat, which is an entry point of ours and would ask us.
bool status_of(int fd, struct stat& status) { return syscall(SYS_fstat, fd, &status) == 0; }

}  // namespace

constinit DescriptorTable descriptors;

// One open file description. The count of references decides about its life; whoever has one may
// read the rest, which does not change meanwhile.
struct DescriptorTable::Entry {
  std::atomic<std::uint32_t> references{0};  // slots and calls in progress
  std::uint32_t epoch = 0;                   // in which it was opened
  std::shared_ptr<EmulatedFile> file;        // null: private
  std::atomic<int>* number = nullptr;        // private: where the owner keeps it
  dev_t file_system = 0;                     // of the backing file
  ino_t inode = 0;
  Entry* next = nullptr;

  // False: it is being retired. Entries are recycled, so the caller looks again whether its is
  // meant.
  bool try_reference() {
    std::uint32_t now = references.load(std::memory_order_relaxed);
    while (now != 0) {
      if (references.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
};

EmulatedFile* DescriptorTable::Reference::file() const {
  return entry_->epoch == table_->epoch_ ? entry_->file.get() : nullptr;
}

dev_t DescriptorTable::Reference::device_number() const { return entry_->file->device_number(); }

bool DescriptorTable::Reference::is_private() const { return entry_->number != nullptr; }

bool DescriptorTable::Reference::is_open_on(int fd) const {
  struct stat status {};
  return status_of(fd, status) && status.st_dev == entry_->file_system &&
         status.st_ino == entry_->inode;
}

DescriptorTable::Reference DescriptorTable::find(int fd) {
  if (count_.load(std::memory_order_relaxed) == 0) return {};
  const std::atomic<int>* mark = fork_mark_.load(std::memory_order_acquire);
  if (mark != nullptr && mark->load(std::memory_order_relaxed) == 0) notice_fork();
  const Slot* slot = find_slot(fd);
  if (slot == nullptr) return {};
  // A failure means that the slot has just been given another value.
  while (Entry* entry = slot->load(std::memory_order_acquire)) {
    if (!entry->try_reference()) continue;
    if (slot->load(std::memory_order_acquire) == entry) return {this, entry};
    release(entry);
  }
  return {};
}

DescriptorTable::Slot* DescriptorTable::make_slot(int fd) {
  const auto number = static_cast<std::uint32_t>(fd);
  const std::lock_guard lock(mutex_);
  auto& branch = top_[number >> 20];
  if (branch == nullptr) branch = new (std::nothrow) Branch{};
  if (branch == nullptr) return nullptr;
  auto& leaf = (*branch.load())[(number >> 10) % kFanOut];
  if (leaf == nullptr) leaf = new (std::nothrow) Leaf{};
  if (leaf == nullptr) return nullptr;
  return &(*leaf.load())[number % kFanOut];
}

DescriptorTable::Entry* DescriptorTable::make_entry() {
  const std::lock_guard lock(mutex_);
  if (free_ == nullptr) return new (std::nothrow) Entry;
  return std::exchange(free_, free_->next);
}

// Takes over the caller's reference to `entry`, if there is one, and drops the slot's.
void DescriptorTable::put(Slot& slot, Entry* entry) {
  Entry* old = slot.exchange(entry, std::memory_order_acq_rel);
  if (entry != nullptr && old == nullptr) ++count_;
  if (entry == nullptr && old != nullptr) --count_;
  if (old != nullptr) release(old);
}

bool DescriptorTable::insert(int fd, std::shared_ptr<EmulatedFile> file) {
  watch_for_fork();
  Slot* slot = make_slot(fd);
  Entry* entry = make_entry();
  if (slot == nullptr || entry == nullptr) return false;
  struct stat status {};
  status_of(fd, status);
  entry->file_system = status.st_dev;
  entry->inode = status.st_ino;
  entry->number = nullptr;
  entry->epoch = epoch_;
  entry->file = std::move(file);
  entry->references.store(1, std::memory_order_release);
  put(*slot, entry);
  return true;
}

bool DescriptorTable::insert_private(std::atomic<int>& number) {
  watch_for_fork();
  Slot* slot = make_slot(number);
  Entry* entry = make_entry();
  if (slot == nullptr || entry == nullptr) return false;
  entry->file.reset();
  entry->number = &number;
  entry->epoch = epoch_;
  entry->references.store(1, std::memory_order_release);
  put(*slot, entry);
  return true;
}

void DescriptorTable::copy(int from, int to) {
  Reference source = find(from);
  if (!source || source.is_private()) return remove(to);
  if (!source.is_open_on(to)) {
    remove(from);
    return remove(to);
  }
  Slot* slot = make_slot(to);
  if (slot != nullptr) put(*slot, std::exchange(source.entry_, nullptr));
}

void DescriptorTable::remove(int fd) {
  Slot* slot = find_slot(fd);
  if (slot != nullptr) put(*slot, nullptr);
}

bool DescriptorTable::move_away(int fd) {
  const Reference reference = find(fd);
  if (!reference || !reference.is_private()) return true;
  std::atomic<int>& number = *reference.entry_->number;
  const int saved = errno;
  int elsewhere = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
  if (elsewhere < 0) elsewhere = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (elsewhere < 0) return false;
  errno = saved;
  number = elsewhere;
  remove(fd);
  return insert_private(number);
}

std::uint64_t DescriptorTable::next(std::uint64_t first, std::uint64_t last) const {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 31;
  for (std::uint64_t fd = first; fd <= last && fd < kNone;) {
    const Branch* branch = top_[fd >> 20].load(std::memory_order_acquire);
    if (branch == nullptr) {
      fd = ((fd >> 20) + 1) << 20;
      continue;
    }
    const Leaf* leaf = (*branch)[(fd >> 10) % kFanOut].load(std::memory_order_acquire);
    if (leaf == nullptr) {
      fd = ((fd >> 10) + 1) << 10;
      continue;
    }
    if ((*leaf)[fd % kFanOut].load(std::memory_order_acquire) != nullptr) return fd;
    ++fd;
  }
  return last + 1;
}

void DescriptorTable::release(Entry* entry) {
  if (entry->references.fetch_sub(1, std::memory_order_acq_rel) == 1) retire(entry);
}

// Outside the lock: closing a device may take its time, and close other descriptors of ours.
void DescriptorTable::retire(Entry* entry) {
  const bool dead = entry->epoch != epoch_;
  std::shared_ptr<EmulatedFile> file;
  if (!dead) file = std::move(entry->file);
  file.reset();
  const std::lock_guard lock(mutex_);
  Entry*& list = dead ? dead_ : free_;
  entry->next = list;
  list = entry;
}

bool DescriptorTable::is_own_process() {
  const std::atomic<int>* mark = fork_mark_;
  if (mark != nullptr && *mark == 0) notice_fork();
  return owner_ == 0 || owner_ == getpid();
}

void DescriptorTable::after_fork_in_child() {
  mutex_.unlock();
  if (owner_ != 0 && owner_ != getpid()) notice_fork();
}

void DescriptorTable::notice_fork() {
  ++epoch_;
  owner_ = getpid();
  std::atomic<int>* mark = fork_mark_;
  if (mark != nullptr) *mark = 1;
}

// Kernels that do not know MADV_WIPEONFORK leave the matter to after_fork_in_child.
void DescriptorTable::watch_for_fork() {
  if (fork_mark_ != nullptr) return;
  const std::lock_guard lock(mutex_);
  if (fork_mark_ != nullptr) return;
  owner_ = getpid();
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool mapped = memory != MAP_FAILED;
  if (mapped && madvise(memory, page, MADV_WIPEONFORK) == 0) {
    fork_mark_ = new (memory) std::atomic<int>(1);
    return;
  }
  if (mapped) munmap(memory, page);
  fork_mark_ = &never_forked;
}

void DescriptorTable::before_fork() { mutex_.lock(); }

void DescriptorTable::after_fork_in_parent() { mutex_.unlock(); }

}  // namespace urxe::verbs
