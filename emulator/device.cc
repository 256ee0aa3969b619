#include "emulator/device.h"

#include <fmt/core.h>

namespace urxe::emulator {
namespace {

Result<void> refuse_if_used(const Shared& object, const char* name) {
  if (!object.in_use()) return {};
  return fail(Failure::in_use,
              fmt::format("the {} is still used by {} other objects", name, object.users()));
}

Result<void> at_most(std::uint64_t value, std::uint64_t limit, const char* name) {
  if (value <= limit) return {};
  return fail(Failure::invalid,
              fmt::format("{} is {}, the device allows at most {}", name, value, limit));
}

}  // namespace

Device::Device(const DeviceOptions& options, ProgramMemory& memory, QpnRange qpns)
    : engine_(options, memory),
      qps_(qpns, options.seed),
      multicast_(options.limits.max_multicast_groups, options.limits.max_multicast_attach),
      gsi_(engine_.gids, qpns, engine_.options, engine_.counters) {}

// In the order in which they use each other.
Device::~Device() {
  multicast_.clear();
  qps_.clear();
  srqs_.clear();
  cqs_.clear();
}

// --- objects

Result<ProtectionDomain*> Device::create_pd() {
  if (pds_.size() >= options().limits.max_pd) {
    return fail(Failure::no_memory, "all protection domains are in use");
  }
  return &pds_.emplace();
}

Result<void> Device::destroy(ProtectionDomain& pd) {
  if (auto unused = refuse_if_used(pd, "protection domain"); !unused) return unused;
  pds_.erase(pd);
  return {};
}

Result<CompletionQueue*> Device::create_cq(CompletionSink& sink) {
  if (cqs_.size() >= options().limits.max_cq) {
    return fail(Failure::no_memory, "all completion queues are in use");
  }
  return &cqs_.emplace(engine_.events, engine_.explanations, sink);
}

// IBA C11-17
Result<void> Device::destroy(CompletionQueue& cq) {
  if (auto unused = refuse_if_used(cq, "completion queue"); !unused) return unused;
  engine_.events.forget(cq);
  cqs_.erase(cq);
  return {};
}

Result<SharedReceiveQueue*> Device::create_srq(ProtectionDomain& pd, ReceiveSource& source) {
  if (srqs_.size() >= options().limits.max_srq) {
    return fail(Failure::no_memory, "all shared receive queues are in use");
  }
  return &srqs_.emplace(pd, engine_.events, source, next_srq_number_++);
}

Result<void> Device::destroy(SharedReceiveQueue& srq) {
  if (auto unused = refuse_if_used(srq, "shared receive queue"); !unused) return unused;
  engine_.events.forget(srq);
  srqs_.erase(srq);
  return {};
}

Result<AddressHandle*> Device::create_ah(ProtectionDomain& pd, const AddressVector& vector) {
  if (engine_.address_handles.size() >= options().limits.max_ah) {
    return fail(Failure::no_memory, "all address handles are in use");
  }
  if (const auto path = engine_.gids.path_of(vector, wire::Qpn{}, wire::Qpn{}); !path) {
    return tl::unexpected(path.error());
  }
  return &engine_.address_handles.create(pd, vector);
}

Result<void> Device::check(const QueuePairSpec& spec) const {
  const DeviceLimits& limits = options().limits;
  const QpCapabilities& cap = spec.capabilities;
  for (const auto& checked : {
           at_most(cap.max_send_wr, limits.max_qp_wr, "max_send_wr"),
           at_most(cap.max_send_sge, limits.max_sge, "max_send_sge"),
           at_most(cap.max_inline_data, limits.max_inline_data, "max_inline_data"),
           at_most(spec.srq != nullptr ? 0 : cap.max_recv_wr, limits.max_qp_wr, "max_recv_wr"),
           at_most(spec.srq != nullptr ? 0 : cap.max_recv_sge, limits.max_sge, "max_recv_sge"),
       }) {
    if (!checked) return checked;
  }
  if (qps_.size() >= limits.max_qp) return fail(Failure::no_memory, "all queue pairs are in use");
  return {};
}

Result<QueuePair*> Device::create_qp(ProtectionDomain& pd, const QueuePairSpec& spec) {
  if (auto checked = check(spec); !checked) return tl::unexpected(checked.error());
  const auto qpn = qps_.allocate();
  if (!qpn) return fail(Failure::no_memory, "all queue pair numbers are in use");
  return &qps_.insert(std::make_unique<QueuePair>(engine_, pd, spec, *qpn));
}

Result<void> Device::destroy(QueuePair& qp) {
  if (auto unused = refuse_if_used(qp, "queue pair"); !unused) return unused;
  qps_.erase(qp);
  engine_.peers.sweep();
  return {};
}

Device::Census Device::census() const {
  return {.pds = pds_.size(),
          .regions = engine_.keys.regions(),
          .windows = engine_.keys.windows(),
          .cqs = cqs_.size(),
          .srqs = srqs_.size(),
          .ahs = engine_.address_handles.size(),
          .qps = qps_.size(),
          .connections = cm().connections(),
          .listeners = cm().listeners()};
}

void Device::report(AsyncEventType type) {
  if (type == AsyncEventType::port_error) ++engine_.counters.port_errors;
  if (type == AsyncEventType::device_fatal) {  // a NIC does no more work either
    qps_.for_each([](QueuePair& qp) { qp.force_error(AsyncEventType::qp_fatal); });
  }
  engine_.events.add({type, {}});
}

// --- inputs

void Device::handle_packet(Time now, const wire::Inbound& inbound) {
  Counters& counters = engine_.counters;
  must_transmit_now_ = false;
  ++counters.received_packets;
  counters.received_bytes += inbound.bytes.size();
  if (inbound.path.destination.is_multicast()) ++counters.received_multicast_packets;
  if (!inbound.icrc_is_right) {
    ++counters.icrc_errors;
    return;
  }
  const auto packet = wire::parse_packet(inbound.bytes);
  if (!packet) {
    ++counters.malformed_packets;
    return;
  }
  if (inbound.path.ecn() == wire::Ecn::ce) ++counters.ce_marked_packets;
  if (packet->bth.destination == wire::kGsiQpn) return gsi_.handle_packet(now, *packet, inbound);
  if (packet->bth.destination == wire::kMulticastQpn)
    return handle_multicast(now, *packet, inbound);
  QueuePair* qp = qps_.find(packet->bth.destination);
  if (qp == nullptr) {
    ++counters.unknown_qp;
    return;
  }
  qp->handle_packet(now, *packet, inbound);
  must_transmit_now_ = qp->must_answer_now();
}

// Each queue pair that is attached to the group gets a copy.
void Device::handle_multicast(Time now, const wire::Packet& packet, const wire::Inbound& inbound) {
  const bool has_members = multicast_.for_each(inbound.path.destination, [&](QueuePair& member) {
    member.handle_packet(now, packet, inbound);
  });
  if (!has_members) ++engine_.counters.unknown_qp;
}

void Device::handle_timer(Time now) {
  while (Timed* timed = engine_.timers.pop_due(now)) {
    static_cast<QueuePair*>(timed)->handle_timer(now);
  }
  gsi_.cm().handle_timer(now);
}

void Device::flush_posted_receives() {
  engine_.flushers.for_each(
      [](Flusher& flusher) { static_cast<QueuePair&>(flusher).flush_posted_receives(); });
}

// --- outputs

std::optional<wire::Outbound> Device::poll_transmit(Time now, wire::MutableBytes slot) {
  if (gsi_.cm().has_output()) {
    if (const auto mad = gsi_.poll_transmit(slot)) {
      ++engine_.counters.sent_packets;
      engine_.counters.sent_bytes += mad->size;
      return mad;
    }
  }
  while (Transmitter* transmitter = engine_.transmitters.front()) {
    auto& qp = static_cast<QueuePair&>(*transmitter);
    // Out of the list first: while it looks for a packet it may find a reason to be asked again.
    transmitter->unlink();
    const auto outbound = qp.poll_transmit(now, slot);
    if (!outbound) {
      quantum_used_ = 0;
      continue;
    }
    ++engine_.counters.sent_packets;
    engine_.counters.sent_bytes += outbound->size;
    if (outbound->path->destination.is_multicast()) ++engine_.counters.sent_multicast_packets;
    if (++quantum_used_ < options().transmit_quantum) {
      engine_.transmitters.push_front(qp);
    } else {
      quantum_used_ = 0;
      engine_.transmitters.push_back(qp);
    }
    return outbound;
  }
  return std::nullopt;
}

}  // namespace urxe::emulator
