#include "tests/sim/swarm/memory_checker.h"

#include <algorithm>
#include <cstring>

namespace urxe::swarm {
namespace {

// The entry of a map from starts whose range holds [address, address + size); nullptr if none does.
template <typename Map, typename SizeOf>
auto* holder_of(Map& map, std::uint64_t address, std::uint64_t size, SizeOf size_of) {
  auto found = map.upper_bound(address);
  if (found == map.begin()) return static_cast<decltype(&found->second)>(nullptr);
  --found;
  const std::uint64_t offset = address - found->first;
  const std::uint64_t whole = size_of(found->second);
  return offset <= whole && size <= whole - offset ? &found->second : nullptr;
}

}  // namespace

void MemoryChecker::check_region(std::uint64_t address, std::uint64_t size, bool writes,
                                 const char* what) {
  // A damaged request that is believed may ask for any address of an implicit region.
  if (only_regions_ && has_implicit(writes)) return;
  const Region* region = holder_of(regions_, address, size, [](const Region& r) { return r.size; });
  if (region == nullptr) {
    findings_.add("{}: {} of {:#x} + {:#x}, which is not in a registered region", name_, what,
                  address, size);
  } else if (writes && !region->writable) {
    findings_.add("{}: {} of {:#x} + {:#x}, which may only be read", name_, what, address, size);
  }
}

void MemoryChecker::on_read(std::uint64_t from, std::size_t size) {
  if (size > 0) check_region(from, size, false, "read");
}

void MemoryChecker::on_write(std::uint64_t to, std::span<const std::uint8_t> data) {
  if (data.empty()) return;
  check_region(to, data.size(), true, "write");
  if (only_regions_) return;
  AreaState* area = holder_of(areas_, to, data.size(), [](const AreaState& a) { return a.size; });
  if (area == nullptr) {
    findings_.add("{}: wrote {:#x} + {:#x}, where nothing is expected", name_, to, data.size());
    return;
  }
  switch (area->kind) {
    case Area::in_turn:
      return check_turn(*area, to, data);
    case Area::unordered:
      return check_known(*area, to, data);
    case Area::receives:
      return check_lent(*area, to, data.size());
    case Area::untouched:
    case Area::counters:
      findings_.add("{}: wrote {:#x} + {:#x}, which nothing may write", name_, to, data.size());
  }
}

const MemoryChecker::Effect* MemoryChecker::due(AreaState& area) {
  const auto finished = [](const Effect& effect) {
    return effect.message->effect_done >= effect.message->bytes.size();
  };
  while (!area.effects.empty() && finished(area.effects.front())) area.effects.pop_front();
  return area.effects.empty() ? nullptr : &area.effects.front();
}

void MemoryChecker::check_turn(AreaState& area, std::uint64_t to,
                               std::span<const std::uint8_t> data) {
  const Effect* effect = due(area);
  if (effect == nullptr) {
    findings_.add("{}: wrote {:#x} + {:#x} once more than was asked for", name_, to, data.size());
    return;
  }
  Message& message = *effect->message;
  const std::uint64_t next = effect->address + message.effect_done;
  if (to != next || data.size() > message.bytes.size() - message.effect_done) {
    findings_.add("{}: wrote {:#x} + {:#x} when {:#x} + {:#x} of message {} was due", name_, to,
                  data.size(), next, message.bytes.size() - message.effect_done, message.id);
    return;
  }
  if (message.is_atomic_write()) {
    findings_.add("{}: ATOMIC WRITE {} is written like any other: a reader may find half of it",
                  name_, message.id);
  }
  const auto expected = message.bytes.begin() + static_cast<std::ptrdiff_t>(message.effect_done);
  const bool known = !message.is_atomic() && message.flaw == Flaw::none;
  if (known && !std::equal(data.begin(), data.end(), expected)) {
    findings_.add("{}: wrote other bytes to {:#x} than message {} has", name_, to, message.id);
  }
  message.effect_done += data.size();
}

void MemoryChecker::check_known(const AreaState& area, std::uint64_t to,
                                std::span<const std::uint8_t> data) {
  const bool known = std::any_of(area.effects.begin(), area.effects.end(), [&](const Effect& e) {
    const std::uint64_t offset = to - e.address;
    if (to < e.address || offset + data.size() > e.message->bytes.size()) return false;
    return std::equal(data.begin(), data.end(),
                      e.message->bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  });
  if (!known) findings_.add("{}: wrote {:#x} + {:#x}, as no message asked", name_, to, data.size());
}

void MemoryChecker::check_lent(const AreaState& area, std::uint64_t to, std::size_t size) {
  if (holder_of(area.lent, to, size, [](std::uint64_t s) { return s; }) != nullptr) return;
  findings_.add("{}: wrote {:#x} + {:#x}, which is no receive that the device has", name_, to,
                size);
}

void MemoryChecker::check_store(AreaState& area, const Atomic& atomic) {
  const Effect* effect = due(area);
  const bool its_turn = effect != nullptr && effect->message->is_atomic_write() &&
                        effect->address == atomic.address && effect->message->effect_done == 0;
  if (!its_turn) {
    findings_.add("{}: an ATOMIC WRITE of {:#x} that is not due there now", name_, atomic.address);
    return;
  }
  Message& message = *effect->message;
  if (std::memcmp(message.bytes.data(), &atomic.new_value, sizeof(atomic.new_value)) != 0) {
    findings_.add("{}: ATOMIC WRITE {} wrote other bytes than it has", name_, message.id);
  }
  message.effect_done = sizeof(atomic.new_value);
}

void MemoryChecker::on_atomic(const Atomic& atomic) {
  check_region(atomic.address, sizeof(std::uint64_t), true, "atomic");
  if (only_regions_) return;
  AreaState* area = holder_of(areas_, atomic.address, sizeof(std::uint64_t),
                              [](const AreaState& a) { return a.size; });
  if (area != nullptr && area->kind == Area::in_turn) return check_store(*area, atomic);
  if (area == nullptr || area->kind != Area::counters) {
    findings_.add("{}: an atomic changed {:#x}, which is no counter", name_, atomic.address);
    return;
  }
  const auto [counter, is_new] = counters_.try_emplace(atomic.address, atomic.old_value);
  if (counter->second != atomic.old_value) {
    findings_.add("{}: the counter at {:#x} changed by other means", name_, atomic.address);
  }
  counter->second = atomic.new_value;
  Message* message = atomics_.find(atomic.operand);
  if (message == nullptr || message->remote_address != atomic.address) {
    findings_.add("{}: an atomic was executed at {:#x} that nobody asked for", name_,
                  atomic.address);
    return;
  }
  if (++message->executions > 1) {
    findings_.add("{}: atomic {} was executed {} times", name_, message->id, message->executions);
  }
  message->old_value = atomic.old_value;
}

// --- memory that is not there

bool MemoryChecker::may_be_refused(const Refusal& refusal) const {
  const auto overlaps = [&](const auto& hole) {
    return refusal.address < hole.first + hole.second &&
           hole.first < refusal.address + refusal.size;
  };
  return has_implicit(false) || std::any_of(holes_.begin(), holes_.end(), overlaps);
}

bool MemoryChecker::has_implicit(bool writable) const {
  return std::any_of(regions_.begin(), regions_.end(), [&](const auto& region) {
    return region.second.implicit && (region.second.writable || !writable);
  });
}

void MemoryChecker::on_refused(const Refusal& refusal) {
  ++refusals_;
  if (!may_be_refused(refusal)) {
    findings_.add("{}: access to {:#x} + {:#x}, where no memory is", name_, refusal.address,
                  refusal.size);
    return;
  }
  AreaState* area =
      holder_of(areas_, refusal.address, refusal.size, [](const AreaState& a) { return a.size; });
  if (area == nullptr) return;
  check_region(refusal.address, refusal.size, refusal.kind != Kind::read, "attempt");
  if (!only_regions_) note_refusal(*area, refusal);
}

// Whose effect it was, where one can tell: that must not succeed.
void MemoryChecker::note_refusal(AreaState& area, const Refusal& refusal) {
  area.refused = true;
  Message* message = nullptr;
  if (area.kind == Area::counters) {
    message = atomics_.find(refusal.operand);
  } else if (area.kind == Area::in_turn && refusal.kind != Kind::read) {
    const Effect* effect = due(area);
    if (effect != nullptr) message = effect->message;
  }
  if (message != nullptr) message->refused = true;
}

}  // namespace urxe::swarm
