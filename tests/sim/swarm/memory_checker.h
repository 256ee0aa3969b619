// Watches what a device does to its program's memory.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/sim/swarm/findings.h"
#include "tests/sim/swarm/message.h"
#include "tests/support/work_doubles.h"

namespace urxe::swarm {

// Atomics have operands that no other atomic has, so that each execution tells whose it is.
class AtomicLog {
 public:
  void expect(std::uint64_t operand, Message& message) { messages_[operand] = &message; }
  [[nodiscard]] Message* find(std::uint64_t operand) const {
    const auto found = messages_.find(operand);
    return found == messages_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::uint64_t, Message*> messages_;
};

// Every access must lie in a region that is registered, with the right to write if it writes. Then
// it must be one that somebody waits for; what that means depends on the area of memory. One to
// memory that is not there must be one that a program has to expect: of pages that it took away,
// or of an address that only an implicit region covers. With `only_regions` requests may be
// damaged, and only that counts which no damage excuses.
class MemoryChecker final : public test::MemoryObserver {
 public:
  enum class Area : std::uint8_t {
    in_turn,    // RC: effects happen in the order in which they were asked for, each byte once;
                // those of ATOMIC WRITEs in one piece
    unordered,  // UC: effects may be lost or repeated, but none is made up
    receives,   // slots, written only while they are lent to the device
    untouched,  // nothing writes here
    counters,   // atomics only
  };

  MemoryChecker(Findings& findings, AtomicLog& atomics, std::string name, bool only_regions)
      : findings_(findings),
        atomics_(atomics),
        name_(std::move(name)),
        only_regions_(only_regions) {}

  // What is registered now. An `implicit` region lets peers ask for any address; still none but
  // these bytes may be touched.
  void allow(std::uint64_t start, std::uint64_t size, bool writable, bool implicit = false) {
    regions_[start] = {size, writable, implicit};
  }
  void forbid(std::uint64_t start) { regions_.erase(start); }
  // Pages go and come back.
  void take_away(std::uint64_t start, std::uint64_t size) { holes_[start] = size; }
  void bring_back(std::uint64_t start) { holes_.erase(start); }
  // Whether an access to this area was refused, since it was forgotten last.
  [[nodiscard]] bool was_refused(std::uint64_t start) const { return areas_.at(start).refused; }

  void add_area(std::uint64_t start, std::uint64_t size, Area kind) {
    areas_[start] = {.size = size, .kind = kind, .effects = {}, .lent = {}, .refused = false};
  }
  // An effect on the area at `start`. `message.bytes` are what must be written; of an atomic they
  // are not known beforehand.
  void expect(std::uint64_t start, std::uint64_t address, Message& message) {
    areas_.at(start).effects.push_back({address, &message});
  }
  // Nothing is waited for any more.
  void forget(std::uint64_t start) {
    areas_.at(start).effects.clear();
    areas_.at(start).refused = false;
  }
  void lend(std::uint64_t start, std::uint64_t slot, std::uint64_t size) {
    areas_.at(start).lent[slot] = size;
  }
  void take_back(std::uint64_t start, std::uint64_t slot) { areas_.at(start).lent.erase(slot); }

  void on_read(std::uint64_t from, std::size_t size) override;
  void on_write(std::uint64_t to, std::span<const std::uint8_t> data) override;
  void on_atomic(const Atomic& atomic) override;
  void on_refused(const Refusal& refusal) override;
  [[nodiscard]] std::uint64_t refusals() const { return refusals_; }

 private:
  struct Region {
    std::uint64_t size;
    bool writable;
    bool implicit;
  };
  struct Effect {
    std::uint64_t address;
    Message* message;
  };
  struct AreaState {
    std::uint64_t size = 0;
    Area kind{};
    std::deque<Effect> effects;
    std::map<std::uint64_t, std::uint64_t> lent;  // slot to size
    bool refused = false;
  };

  void check_region(std::uint64_t address, std::uint64_t size, bool writes, const char* what);
  // The effect that is due in an area whose effects happen in turn; nullptr if none is.
  [[nodiscard]] static const Effect* due(AreaState& area);
  void check_store(AreaState& area, const Atomic& atomic);
  void note_refusal(AreaState& area, const Refusal& refusal);
  [[nodiscard]] bool has_implicit(bool writable) const;
  [[nodiscard]] bool may_be_refused(const Refusal& refusal) const;
  void check_turn(AreaState& area, std::uint64_t to, std::span<const std::uint8_t> data);
  void check_known(const AreaState& area, std::uint64_t to, std::span<const std::uint8_t> data);
  void check_lent(const AreaState& area, std::uint64_t to, std::size_t size);

  Findings& findings_;
  AtomicLog& atomics_;
  std::string name_;
  bool only_regions_;
  std::map<std::uint64_t, Region> regions_;
  std::map<std::uint64_t, AreaState> areas_;
  std::map<std::uint64_t, std::uint64_t> holes_;
  std::uint64_t refusals_ = 0;
  std::map<std::uint64_t, std::uint64_t> counters_;  // what must stand there
};

}  // namespace urxe::swarm
