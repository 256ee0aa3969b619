// What programs of the swarm ask for, right and wrong.
#include <algorithm>
#include <cstring>

#include "tests/sim/swarm/endpoint.h"

namespace urxe::swarm {

using namespace emulator;

namespace {

// A number in a ring that no operation has.
constexpr auto kNoOpcode = static_cast<WorkOpcode>(13);
constexpr wire::QKey kQKey{0x11111111};
constexpr std::size_t kTag = sizeof(std::uint64_t);  // the id in a message's first bytes
constexpr std::size_t kMaxInline = 64;
constexpr std::uint64_t kOperandFactor = 0x9E3779B97F4A7C15;  // odd: no two ids share an operand
constexpr std::uint32_t kKeyFlip = 0x80;                      // makes a key that opens nothing

constexpr std::array kReliable{WorkOpcode::send,
                               WorkOpcode::send_with_immediate,
                               WorkOpcode::rdma_write,
                               WorkOpcode::rdma_write,
                               WorkOpcode::rdma_write_with_immediate,
                               WorkOpcode::rdma_read,
                               WorkOpcode::rdma_read,
                               WorkOpcode::compare_swap,
                               WorkOpcode::fetch_add,
                               WorkOpcode::send_with_invalidate};
constexpr std::array kUnreliable{WorkOpcode::send, WorkOpcode::send_with_immediate,
                                 WorkOpcode::rdma_write, WorkOpcode::rdma_write_with_immediate};
constexpr std::array kDatagram{WorkOpcode::send, WorkOpcode::send_with_immediate};

std::uint32_t size32(std::size_t size) { return static_cast<std::uint32_t>(size); }

// Pieces of [address, address + size), some of them empty.
std::vector<Sge> split(net::Random& dice, std::uint64_t address, std::size_t size,
                       std::uint32_t key) {
  std::vector<Sge> list;
  while (size > 0 && list.size() < 3 && dice.chance(0.3)) {
    const std::size_t piece = dice.below(size + 1);
    list.push_back({address, size32(piece), key});
    address += piece;
    size -= piece;
  }
  if (size > 0 || dice.chance(0.5)) list.push_back({address, size32(size), key});
  return list;
}

}  // namespace

struct Endpoint::Draft {
  test::OwnedSend send;
  Message* message = nullptr;
  Endpoint* to = nullptr;
  std::size_t slot = 0;
  bool inlined = false;
  [[nodiscard]] SendRequest& request() { return send.request; }
};

// --- requests

WorkOpcode Endpoint::draw_opcode(net::Random& dice) const {
  if (connection_.draws_placements && dice.chance(0.25)) {
    return dice.chance(0.5) ? WorkOpcode::atomic_write : WorkOpcode::flush;
  }
  if (type() == QpType::rc) return kReliable.at(dice.below(kReliable.size()));
  if (type() == QpType::uc) return kUnreliable.at(dice.below(kUnreliable.size()));
  return kDatagram.at(dice.below(kDatagram.size()));
}

std::size_t Endpoint::draw_size(net::Random& dice, std::size_t limit) const {
  const std::size_t low = type() == QpType::rc ? 0 : kTag;
  std::size_t size = dice.below(limit + 1);
  if (dice.chance(0.3)) size = (size / mtu_) * mtu_;  // whole packets
  if (dice.chance(0.3)) size = dice.below(kMaxInline + 1);
  return std::clamp(size, low, limit);
}

bool Endpoint::peer_allows(WorkOpcode opcode) const {
  const Access access = peer_->plan_.access;
  const bool answers = peer_->plan_.max_dest_read_atomic != 0;
  if (opcode == WorkOpcode::rdma_read) return access.has(kRemoteRead) && answers;
  if (opcode == WorkOpcode::compare_swap || opcode == WorkOpcode::fetch_add) {
    return access.has(kRemoteAtomic) && answers;
  }
  if (opcode == WorkOpcode::flush) return access.has(kFlushGlobal) && answers;
  if (opcode == WorkOpcode::atomic_write) return answers;
  return true;
}

void Endpoint::post_requests(net::Random& dice) {
  trim();
  if (state() == QpState::send_queue_error && dice.chance(0.5)) recover();
  const bool takes = state() == QpState::ready_to_send || state() == QpState::send_queue_drain ||
                     state() == QpState::error || state() == QpState::send_queue_error;
  if (!takes) return;
  const std::uint64_t count = dice.between(1, 4);
  for (std::uint64_t i = 0; i < count; ++i) post_one(dice);
  static_cast<void>(qp_->ring_doorbell());
  machine_.host().settle();
}

void Endpoint::post_one(net::Random& dice) {
  const auto slot = free_slot();
  if (!slot) return;
  Draft draft{.send = {}, .message = &shared_.new_message(), .to = peer_, .slot = *slot};
  Message& message = *draft.message;
  message.opcode = draw_opcode(dice);
  message.from = this;
  message.local_address = slot_address(*slot);
  fill_draft(draft, dice);
  message.to = draft.to;
  if (dice.chance(0.04)) spoil(draft, dice);
  const bool flushes = state() == QpState::error || state() == QpState::send_queue_error;
  if (!flushes) note_expectations(draft);
  submit(draft, dice);
}

void Endpoint::submit(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  SendRequest& request = draft.request();
  request.wr_id = message.id;
  request.opcode = message.opcode;
  request.immediate = message.immediate();
  request.flags = dice.chance(0.6) ? kSignaled : SendFlags{};
  if (dice.chance(0.1)) request.flags |= kFence;
  if (dice.chance(0.2)) request.flags |= kSolicited;
  posted_.push_back({.message = draft.message,
                     .signalled = plan_.signal_all || request.flags.has(kSignaled),
                     .slot = draft.slot});
  sends_.post(std::move(draft.send));
}

void Endpoint::fill_draft(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  if (type() == QpType::ud) return fill_datagram(draft, dice);
  if (message.sends()) return fill_send(draft, dice);
  if (message.writes()) return fill_write(draft, dice);
  if (message.opcode == WorkOpcode::rdma_read) return fill_read(draft, dice);
  if (message.is_atomic_write()) return fill_atomic_write(draft, dice);
  if (message.is_flush()) return fill_flush(draft, dice);
  fill_atomic(draft, dice);
}

// The bytes of a message in this end's memory, or in the request itself.
void Endpoint::give_bytes(Draft& draft, net::Random& dice, std::size_t size) {
  Message& message = *draft.message;
  const Area& local = parts_[kLocal];
  message.bytes = bytes_of_message(message.id, size);
  draft.request().length = size;
  draft.inlined = size > 0 && size <= kMaxInline && dice.chance(0.3);
  if (draft.inlined) {
    draft.send.inline_data = message.bytes;
    return;
  }
  std::copy(message.bytes.begin(), message.bytes.end(),
            machine_.bytes(message.local_address, size));
  draft.send.sges = split(dice, message.local_address, size, local.key);
  if (local.region == nullptr && size > 0) message.flaw = Flaw::bad_lkey;
}

void Endpoint::fill_send(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  give_bytes(draft, dice, draw_size(dice, shared_.max_message));
  if (message.opcode != WorkOpcode::send_with_invalidate) return;
  if (peer_->window_state_ != WindowState::bound) {
    message.opcode = WorkOpcode::send;
    return;
  }
  draft.request().invalidate = wire::RKey{peer_->window_key_};
  message.invalidates = peer_->window_key_;
  if (message.flaw == Flaw::none) peer_->window_state_ = WindowState::leaving;
}

void Endpoint::fill_write(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  const Area& target = peer_->parts_[kTarget];
  const std::size_t size = draw_size(dice, std::min(shared_.max_message, target.size));
  give_bytes(draft, dice, size);
  std::uint64_t offset = dice.below(target.size - size + 1);
  std::uint32_t key = target.key;
  const bool through_window = peer_->window_state_ == WindowState::bound && type() == QpType::rc &&
                              size <= peer_->window_size_ && dice.chance(0.5);
  if (through_window) {
    offset = dice.below(peer_->window_size_ - size + 1);
    key = peer_->window_key_;
  }
  message.remote_address = draft.request().remote_address = target.start + offset;
  draft.request().rkey = wire::RKey{key};
  if (target.region == nullptr && size > 0 && message.flaw == Flaw::none) {
    message.flaw = Flaw::bad_rkey;
  }
}

void Endpoint::fill_read(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  const Area& source = peer_->parts_[kSource];
  const std::size_t size = draw_size(dice, std::min(shared_.max_message, source.size));
  message.remote_address = source.start + dice.below(source.size - size + 1);
  const std::uint8_t* bytes = peer_->machine().bytes(message.remote_address, size);
  message.bytes.assign(bytes, bytes + size);
  draft.request().length = size;
  draft.request().remote_address = message.remote_address;
  draft.request().rkey = wire::RKey{source.key};
  draft.send.sges = split(dice, message.local_address, size, parts_[kLocal].key);
  if (parts_[kLocal].region == nullptr && size > 0) {
    message.flaw = Flaw::bad_lkey;
  } else if (!peer_allows(message.opcode)) {
    message.flaw = Flaw::not_allowed;
  } else if (source.region == nullptr && size > 0) {
    message.flaw = Flaw::bad_rkey;
  }
}

void Endpoint::fill_atomic(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  const Area& counters = peer_->machine().counters();
  const std::uint64_t counter = dice.below(counters.size / sizeof(std::uint64_t));
  const std::uint64_t operand = message.id * kOperandFactor;
  message.remote_address = counters.start + counter * sizeof(std::uint64_t);
  message.bytes.resize(sizeof(std::uint64_t));
  SendRequest& request = draft.request();
  request.length = sizeof(std::uint64_t);
  request.remote_address = message.remote_address;
  request.rkey = wire::RKey{counters.key};
  request.swap = request.compare_or_add = operand;
  if (message.opcode == WorkOpcode::compare_swap && dice.chance(0.6)) {
    std::memcpy(&request.compare_or_add,
                peer_->machine().bytes(message.remote_address, sizeof(std::uint64_t)),
                sizeof(std::uint64_t));
  }
  draft.send.sges = {{message.local_address, sizeof(std::uint64_t), parts_[kLocal].key}};
  if (parts_[kLocal].region == nullptr) {
    message.flaw = Flaw::bad_lkey;
  } else if (!peer_allows(message.opcode)) {
    message.flaw = Flaw::not_allowed;
  }
}

void Endpoint::fill_atomic_write(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  const Area& target = peer_->parts_[kTarget];
  give_bytes(draft, dice, sizeof(std::uint64_t));
  const bool through_window = peer_->window_state_ == WindowState::bound &&
                              peer_->window_size_ >= sizeof(std::uint64_t) && dice.chance(0.5);
  const std::size_t room = through_window ? peer_->window_size_ : target.size;
  message.remote_address =
      target.start + sizeof(std::uint64_t) * dice.below(room / sizeof(std::uint64_t));
  draft.request().remote_address = message.remote_address;
  draft.request().rkey = wire::RKey{through_window ? peer_->window_key_ : target.key};
  if (message.flaw != Flaw::none) return;
  if (!peer_allows(message.opcode)) {
    message.flaw = Flaw::not_allowed;
  } else if (target.region == nullptr) {
    message.flaw = Flaw::bad_rkey;
  }
}

void Endpoint::fill_flush(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  const Area& target = peer_->parts_[kTarget];
  SendRequest& request = draft.request();
  const std::uint64_t offset = dice.below(target.size);
  request.flush = {.length = dice.below(target.size - offset + 1),
                   .placement = wire::Feth::kGlobalVisibility,
                   .selectivity = dice.chance(0.3) ? wire::Feth::kWholeRegion : std::uint8_t{0}};
  request.remote_address = message.remote_address = target.start + offset;
  request.rkey = wire::RKey{target.key};
  if (!peer_allows(message.opcode)) {
    message.flaw = Flaw::not_allowed;
  } else if (target.region == nullptr) {
    message.flaw = Flaw::bad_rkey;
  }
}

void Endpoint::address_datagram(Draft& draft, const wire::IpAddress& to, wire::Qpn qpn) {
  const auto [handle, is_new] = handles_.try_emplace(to, nullptr);
  if (is_new) {
    AddressVector vector;
    vector.destination = to;
    vector.global = true;
    handle->second = *machine_.device().create_ah(machine_.pd(), vector);
  }
  draft.request().datagram = {
      .handle_number = handle->second->number(), .vector = {}, .qpn = qpn, .qkey = kQKey};
}

void Endpoint::fill_datagram(Draft& draft, net::Random& dice) {
  if (shared_.plan.draws == Draws::all && dice.chance(0.4)) {
    draft.message->to_group = true;
    address_datagram(draft, group_address(dice.below(kGroups)), wire::kMulticastQpn);
  } else {
    Endpoint* to = shared_.datagram_ends.at(dice.below(shared_.datagram_ends.size()));
    if (&to->machine() == &machine_) to = peer_;
    draft.to = to;
    address_datagram(draft, to->machine().host().address(), to->qp().qpn());
  }
  give_bytes(draft, dice, draw_size(dice, std::min(shared_.max_message, std::size_t{1024})));
}

// --- wrong requests

void Endpoint::spoil(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  if (message.flaw != Flaw::none || message.invalidates != 0) return;
  SendRequest& request = draft.request();
  switch (dice.below(4)) {
    case 0:
      if (draft.inlined || request.length == 0) return;
      message.flaw = Flaw::bad_lkey;
      draft.send.sges.back() = {message.local_address, size32(request.length),
                                parts_[kLocal].key ^ kKeyFlip};
      return;
    case 1:
      message.flaw = Flaw::unsupported;
      message.opcode = type() == QpType::ud ? WorkOpcode::rdma_write : kNoOpcode;
      return;
    case 2:
      if (type() != QpType::rc || message.opcode != WorkOpcode::send) break;
      message.flaw = Flaw::bad_invalidate;
      message.opcode = WorkOpcode::send_with_invalidate;
      request.invalidate = wire::RKey{peer_->parts_[kSource].key};
      return;
    default:
      break;
  }
  if (message.is_flush()) return spoil_flush(draft, dice);
  if (type() == QpType::rc) spoil_remote(draft, dice);
}

void Endpoint::spoil_flush(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  SendRequest& request = draft.request();
  const Area& target = peer_->parts_[kTarget];
  if (dice.chance(0.3)) {
    message.flaw = Flaw::not_allowed;
    request.flush.placement |= wire::Feth::kPersistence;
  } else if (dice.chance(0.5) && target.paging != Paging::implicit) {
    message.flaw = Flaw::out_of_bounds;
    request.flush.selectivity = 0;
    request.flush.length = target.start + target.size - request.remote_address + 1;
  } else {
    message.flaw = Flaw::bad_rkey;
    request.rkey = wire::RKey{request.rkey.value() ^ kKeyFlip};
  }
}

// An implicit region has no bounds, so there it is an address without memory.
void Endpoint::leave_bounds(Draft& draft, const Area& part) {
  constexpr std::uint64_t kFarAway = 0x8000;
  Message& message = *draft.message;
  const bool implicit = part.paging == Paging::implicit;
  message.flaw = Flaw::out_of_bounds;
  draft.request().rkey = wire::RKey{part.key};
  draft.request().remote_address =
      part.start + part.size + (implicit ? kFarAway : 1 - message.bytes.size());
}

void Endpoint::spoil_remote(Draft& draft, net::Random& dice) {
  Message& message = *draft.message;
  SendRequest& request = draft.request();
  if (message.sends()) {
    // Longer than any receive of the peer's: this end's memory twice.
    if (parts_[kLocal].region == nullptr) return;
    message.flaw = Flaw::too_long;
    const Sge whole{message.local_address, size32(shared_.max_message), parts_[kLocal].key};
    request.length = 2 * shared_.max_message;
    draft.send.inline_data.clear();
    draft.send.sges = {whole, whole};
    return;
  }
  if (message.bytes.empty()) return;
  const std::uint64_t roll = dice.below(4);
  const bool eight_bytes = message.is_atomic() || message.is_atomic_write();
  const bool writes = message.writes() || message.is_atomic_write();
  if (eight_bytes && roll == 0) {
    const Area& area = message.is_atomic() ? peer_->machine().counters() : peer_->parts_[kTarget];
    message.flaw = Flaw::misaligned;
    request.remote_address = area.start + 4;
    request.rkey = wire::RKey{area.key};
  } else if (eight_bytes && roll == 1) {
    message.flaw = Flaw::short_atomic;
    request.length = 4;
    draft.send.inline_data.clear();
    draft.send.sges = {{message.local_address, 4, parts_[kLocal].key}};
  } else if (roll == 2) {
    const Area& source = peer_->parts_[writes ? kSource : kLocal];
    message.flaw = source.region != nullptr ? Flaw::no_permission : Flaw::bad_rkey;
    request.remote_address = source.start;
    request.rkey = wire::RKey{source.key};
    if (message.bytes.size() > source.size) message.flaw = Flaw::out_of_bounds;
  } else if (roll == 3 && !message.is_atomic()) {
    leave_bounds(draft, peer_->parts_[writes ? kTarget : kSource]);
  } else {
    message.flaw = Flaw::bad_rkey;
    request.rkey = wire::RKey{request.rkey.value() ^ kKeyFlip};
  }
}

// What must come of the request, and what may.
void Endpoint::note_expectations(Draft& draft) {
  Message& message = *draft.message;
  Endpoint& to = *draft.to;
  if (message.flaw != Flaw::none && type() != QpType::ud) to.may_collapse_ = true;
  const bool arrives = message.flaw == Flaw::none || message.flaw == Flaw::too_long ||
                       message.flaw == Flaw::bad_invalidate;
  if (message.takes_receive() && arrives) {
    if (type() == QpType::rc) to.incoming_.push_back(&message);
    if (type() == QpType::uc) to.heard_of_.push_back(&message);
  }
  if (message.is_flush()) {
    message.writes_before = placed_.size();
    flushes_.push_back(&message);
  }
  // Of a long READ that ends outside of its region, the first pieces may be answered.
  const bool partly =
      message.opcode == WorkOpcode::rdma_read && message.flaw == Flaw::out_of_bounds;
  if ((message.flaw != Flaw::none && !partly) || message.bytes.empty()) return;
  if (message.writes() || message.is_atomic_write()) {
    to.machine().memory_checker().expect(to.parts_[kTarget].start, message.remote_address, message);
    if (type() == QpType::rc) placed_.push_back(&message);
  } else if (message.opcode == WorkOpcode::rdma_read || message.is_atomic()) {
    machine_.memory_checker().expect(parts_[kLocal].start, message.local_address, message);
  }
  if (message.is_atomic()) shared_.atomics.expect(message.id * kOperandFactor, message);
}

// --- windows

void Endpoint::bind(net::Random& dice) {
  const Area& target = parts_[kTarget];
  const bool may = window_ != nullptr && window_state_ == WindowState::unbound &&
                   target.region != nullptr && state() == QpState::ready_to_send;
  if (!may) return;
  Draft draft{.send = {}, .message = &shared_.new_message(), .to = peer_};
  Message& message = *draft.message;
  message.from = message.to = this;
  message.opcode = WorkOpcode::bind_window;
  window_size_ = dice.between(1, target.size);
  window_key_ = (window_->key() & ~0xFFU) | ((window_->key() + 1) & 0xFFU);
  draft.request().bind = {.address = target.start,
                          .length = window_size_,
                          .region = wire::LKey{target.key},
                          .window = wire::RKey{window_->key()},
                          .new_key = wire::RKey{window_key_},
                          .access = kRemoteWrite};
  if (dice.chance(0.05)) {
    message.flaw = Flaw::bad_bind;
    draft.request().bind.length = target.size + 1;
    if (target.paging == Paging::implicit) {
      draft.request().bind.region = wire::LKey{target.key ^ kKeyFlip};
    }
  } else {
    window_state_ = WindowState::binding;
  }
  post_local(draft, dice);
}

void Endpoint::invalidate(net::Random& dice) {
  if (window_state_ != WindowState::bound || state() != QpState::ready_to_send) return;
  Draft draft{.send = {}, .message = &shared_.new_message(), .to = peer_};
  Message& message = *draft.message;
  message.from = message.to = this;
  message.opcode = WorkOpcode::local_invalidate;
  draft.request().invalidate = wire::RKey{window_key_};
  window_state_ = WindowState::leaving;
  // The peer may be writing through it.
  may_collapse_ = true;
  peer_->memory_changed_ = true;
  post_local(draft, dice);
}

void Endpoint::post_local(Draft& draft, net::Random& dice) {
  trim();
  const auto slot = free_slot();
  if (!slot) {
    window_state_ = draft.message->opcode == WorkOpcode::bind_window ? WindowState::unbound
                                                                     : WindowState::bound;
    return;
  }
  draft.slot = *slot;
  submit(draft, dice);
  static_cast<void>(qp_->ring_doorbell());
  machine_.host().settle();
}

// --- receives

void Endpoint::post_receives(net::Random& dice, std::size_t count) {
  ReceivePool& pool = *receives_;
  for (std::size_t slot = 0; slot < pool.slots.size() && count > 0; ++slot) {
    if (pool.slots[slot].lent) continue;
    --count;
    const bool bad = dice.chance(0.005);
    const std::uint64_t address = pool.address_of(slot);
    pool.had_bad = pool.had_bad || bad;
    pool.slots[slot] = {.lent = true, .bad = bad};
    pool.order.push_back(slot);
    machine_.memory_checker().lend(pool.start, address, pool.slot_size);
    auto list = split(dice, address, pool.slot_size, pool.key);
    if (bad) list = {{address, size32(pool.slot_size), pool.key ^ kKeyFlip}};
    pool.source.post(slot, list);
  }
  if (!pool.shared) qp_->flush_posted_receives();
  machine_.host().settle();
}

}  // namespace urxe::swarm
