"""Bugs to plant in the engine, one at a time: what somebody could have written there by mistake."""

import dataclasses
import pathlib

RECOVERY = "emulator/requester_recovery.cc"
RESPONDER = "emulator/responder.cc"
EXECUTE = "emulator/responder_execute.cc"
MULTICAST = "emulator/multicast_table.h"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """`old` occurs once in the file; with `new` in its place the bug is there."""
    name: str
    path: str
    old: str
    new: str

    def applied_to(self, text):
        """The file's text with the bug; ValueError if it does not fit."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.path} has {count} places for “{self.name}”, not one")
        return text.replace(self.old, self.new)

    def fits(self, root):
        self.applied_to((pathlib.Path(root) / self.path).read_text())


MUTANTS = [
    # --- the responder
    Mutant("executes a duplicate atomic", RESPONDER,
           "  const Resource* resource = find_resource(packet.bth.psn);\n"
           "  const auto kind =",
           "  const auto again = context_.engine.keys.resolve_remote(\n"
           "      *context_.pd, context_.qpn, packet.atomic.rkey, packet.atomic.address, 8,\n"
           "      kRemoteAtomic);\n"
           "  if (packet.info->is_atomic() && again) {\n"
           "    static_cast<void>(\n"
           "        context_.engine.memory.fetch_add(*again, packet.atomic.swap_or_add));\n"
           "  }\n"
           "  const Resource* resource = find_resource(packet.bth.psn);\n"
           "  const auto kind ="),
    Mutant("answers a duplicate atomic with the operand", RESPONDER,
           ".old_value = resource->old_value,",
           ".old_value = packet.atomic.swap_or_add,"),
    Mutant("writes a duplicate WRITE again", RESPONDER,
           "    default:\n"
           "      return acknowledge(wire::Syndrome::ack(), expected_ - 1);",
           "    case wire::Operation::rdma_write:\n"
           "      if (packet.info->starts_message()) {\n"
           "        const auto again = context_.engine.keys.resolve_remote(\n"
           "            *context_.pd, context_.qpn, packet.reth.rkey, packet.reth.address,\n"
           "            packet.payload.size(), kRemoteWrite);\n"
           "        if (again) {\n"
           "          static_cast<void>(context_.engine.memory.write(*again, packet.payload));\n"
           "        }\n"
           "      }\n"
           "      [[fallthrough]];\n"
           "    default:\n"
           "      return acknowledge(wire::Syndrome::ack(), expected_ - 1);"),
    Mutant("does not acknowledge a duplicate", RESPONDER,
           "      return acknowledge(wire::Syndrome::ack(), expected_ - 1);",
           "      return;"),
    Mutant("answers a part of a READ from its beginning", RESPONDER,
           ".msn = msn_, .rest = asked, .replay = true}",
           ".msn = msn_, .rest = original, .replay = true}"),
    Mutant("skips the NAK for a gap", RESPONDER,
           "      nak_sent_ = true;\n"
           "      return acknowledge(wire::Syndrome::nak(wire::NakCode::psn_sequence_error)",
           "      nak_sent_ = true;\n"
           "      if (nak_sent_) return;\n"
           "      return acknowledge(wire::Syndrome::nak(wire::NakCode::psn_sequence_error)"),
    Mutant("says the NAK for a gap again and again", RESPONDER,
           "if (ahead > 0) return nak_sent_ ? Step::drop : Step::out_of_sequence;",
           "if (ahead > 0) return Step::out_of_sequence;"),
    Mutant("accepts what comes after a gap", RESPONDER,
           "if (ahead > 0) return nak_sent_ ? Step::drop : Step::out_of_sequence;",
           "if (ahead == 1) expected_ = packet.bth.psn;\n"
           "  if (ahead > 1) return nak_sent_ ? Step::drop : Step::out_of_sequence;"),
    Mutant("does not wrap PSNs", RESPONDER,
           "const std::int32_t ahead = packet.bth.psn.ahead_of(expected_);",
           "const std::int32_t ahead = static_cast<std::int32_t>(packet.bth.psn.value()) -\n"
           "                             static_cast<std::int32_t>(expected_.value());"),
    Mutant("an ACK replaces a NAK that waits", EXECUTE,
           "(last->syndrome.kind() == wire::Syndrome::Kind::ack ||",
           "(last->syndrome.kind() != wire::Syndrome::Kind::reserved ||"),
    Mutant("counts a PSN too many for a READ of whole packets", EXECUTE,
           "(is_read ? packets_of(packet.reth.length, context_.mtu) : 1)",
           "(is_read ? packet.reth.length / context_.mtu + 1 : 1)"),
    Mutant("acknowledges one packet too far", EXECUTE,
           "acknowledge(wire::Syndrome::ack(), executed);",
           "acknowledge(wire::Syndrome::ack(), executed + 1);"),
    Mutant("does not count READs in the MSN", EXECUTE,
           "    msn_ = wire::next(msn_);\n    message_ = Message::none;",
           "    if (!is_read) msn_ = wire::next(msn_);\n    message_ = Message::none;"),
    Mutant("leaves the last receive unflushed", RESPONDER,
           "for (; left > 0 && context_", "for (; left > 1 && context_"),
    Mutant("UC goes on after a lost packet", "emulator/responder_datagram.cc",
           "if (!in_sequence || message_ == Message::none) return Step::drop;",
           "if (in_sequence && message_ == Message::none) return Step::drop;"),
    # --- ATOMIC WRITE and FLUSH
    Mutant("executes a duplicate ATOMIC WRITE", RESPONDER,
           "  const Resource* resource = find_resource(packet.bth.psn);\n"
           "  const auto kind =",
           "  const auto again = context_.engine.keys.resolve_remote(\n"
           "      *context_.pd, context_.qpn, packet.reth.rkey, packet.reth.address, 8,\n"
           "      kRemoteWrite);\n"
           "  if (packet.info->operation == wire::Operation::atomic_write && again) {\n"
           "    static_cast<void>(context_.engine.memory.store(*again, 7));\n"
           "  }\n"
           "  const Resource* resource = find_resource(packet.bth.psn);\n"
           "  const auto kind ="),
    Mutant("writes the bytes of an ATOMIC WRITE like any others", EXECUTE,
           "if (!context_.engine.memory.store(*where, value)) {",
           "if (!context_.engine.memory.write(*where, packet.payload)) {"),
    Mutant("executes an ATOMIC WRITE ahead of the WRITEs that were lost", RESPONDER,
           "if (ahead > 0) return nak_sent_ ? Step::drop : Step::out_of_sequence;",
           "if (ahead > 0 && packet.info->operation == wire::Operation::atomic_write &&\n"
           "      check_key(packet) == Step::proceed) {\n"
           "    static_cast<void>(execute_placement(packet));\n"
           "  }\n"
           "  if (ahead > 0) return nak_sent_ ? Step::drop : Step::out_of_sequence;"),
    Mutant("answers a FLUSH ahead of the WRITEs that were lost", RESPONDER,
           "if (ahead > 0) return nak_sent_ ? Step::drop : Step::out_of_sequence;",
           "if (ahead > 0 && packet.info->operation == wire::Operation::flush) {\n"
           "    responses_.push({.kind = Response::Kind::placement, .psn = packet.bth.psn,\n"
           "                     .msn = msn_});\n"
           "    return Step::drop;\n"
           "  }\n"
           "  if (ahead > 0) return nak_sent_ ? Step::drop : Step::out_of_sequence;"),
    Mutant("leaves the last bytes of a WRITE out of memory", EXECUTE,
           "    if (!where || !context_.engine.memory.write(*where, packet.payload)) {",
           "    if (where && size >= 8 && packet.info->ends_message()) return Step::proceed;\n"
           "    if (!where || !context_.engine.memory.write(*where, packet.payload)) {"),
    Mutant("grants a FLUSH the persistence that nobody allowed", RESPONDER,
           "if ((feth.placement & wire::Feth::kPersistence) != 0) access |= kFlushPersistent;",
           ""),
    Mutant("does not look at the range of a FLUSH", RESPONDER,
           "*context_.pd, context_.qpn, reth.rkey, reth.address, reth.length,\n"
           "                                 flush_access(packet.feth));",
           "*context_.pd, context_.qpn, reth.rkey, reth.address, 0,\n"
           "                                 flush_access(packet.feth));"),
    # --- memory that went away
    Mutant("a WRITE to pages that are gone succeeds", EXECUTE,
           "    if (!where || !context_.engine.memory.write(*where, packet.payload)) {",
           "    if (where) {\n"
           "      static_cast<void>(context_.engine.memory.write(*where, packet.payload));\n"
           "    }\n"
           "    if (!where) {"),
    Mutant("an ATOMIC WRITE to pages that are gone succeeds", EXECUTE,
           "if (!context_.engine.memory.store(*where, value)) {",
           "if (!context_.engine.memory.store(*where, value) && reth.length != 8) {"),
    Mutant("a READ of pages that are gone is answered", EXECUTE,
           "if (!context_.engine.memory.read(*where, slot.subspan(header, payload))) {",
           "if (!context_.engine.memory.read(*where, slot.subspan(header, payload)) &&\n"
           "        payload == 0) {"),
    Mutant("data that came for pages that are gone are lost in silence",
           "emulator/scatter_gather.cc",
           "if (!move(*address, done, count)) return LocalFault{MemoryFault::gone, sge};",
           "static_cast<void>(move(*address, done, count));"),
    Mutant("an implicit region allows whatever is asked for", "emulator/memory.cc",
           "if (!spec.access.has(needs)) return tl::unexpected(MemoryFault::no_permission);\n"
           "  if (spec.whole_address_space) return address;",
           "if (spec.whole_address_space) return address;\n"
           "  if (!spec.access.has(needs)) return tl::unexpected(MemoryFault::no_permission);"),
    # --- multicast
    Mutant("gives a multicast packet to the first member only", MULTICAST,
           "for (const Use<QueuePair>& member : found->second) visit(*member);",
           "visit(*found->second.front());"),
    Mutant("gives a multicast packet to its last member twice", MULTICAST,
           "for (const Use<QueuePair>& member : found->second) visit(*member);",
           "for (const Use<QueuePair>& member : found->second) visit(*member);\n"
           "    visit(*found->second.back());"),
    Mutant("a queue pair that detaches takes another one's place",
           "emulator/multicast_table.cc",
           "found->second.erase(find_member(found->second, qp));",
           "found->second.pop_back();"),
    Mutant("joins a group anew for each queue pair", "emulator/multicast_table.cc",
           "  members.emplace_back(qp);\n  return false;",
           "  members.emplace_back(qp);\n  return true;"),
    Mutant("attaches a queue pair twice", "emulator/multicast_table.cc",
           "if (find_member(members, qp) != members.end()) return false;", ""),
    # --- the requester and the completer
    Mutant("completes one packet too early", "emulator/completer.cc",
           "if (!acknowledge_before(now, psn + 1)) return;\n  if (probed",
           "if (!acknowledge_before(now, psn + 2)) return;\n  if (probed"),
    Mutant("takes a later ACK for a READ's answer", "emulator/completer.cc",
           "if (work.needs_response() && una.is_before(work.end_psn())) {",
           "if (work.is_atomic() && una.is_before(work.end_psn())) {"),
    Mutant("does not wait for the RNR timer", RECOVERY,
           "receiver_ready_at_ = now + delay;", "receiver_ready_at_ = now + 0 * delay;"),
    Mutant("does not count RNR retries", RECOVERY,
           "    ++rnr_retries_;\n", ""),
    Mutant("does not count retries", RECOVERY, "  ++retries_;\n  resend(now);", "  resend(now);"),
    Mutant("does not send the last packet again", RECOVERY,
           "  move_cursor_to(una_psn_);\n}",
           "  move_cursor_to(una_psn_ + 1 == next_psn_ ? next_psn_ : una_psn_);\n}"),
    Mutant("keeps what it withdrew in the window", RECOVERY,
           "if (peer_ && in_flight_bytes_ > 0) peer_->withdrawn(in_flight_bytes_);",
           "if (peer_ && in_flight_bytes_ > 0) peer_->withdrawn(0);"),
    Mutant("executes a local request again after going back", "emulator/requester.cc",
           "if (work.done || (work.started()",
           "if ((work.done && !work.is_local()) || (work.started()"),
    Mutant("asks for one READ more than allowed", "emulator/requester.cc",
           "if (reads_in_flight_.size() >= context_.attributes.max_read_atomic)",
           "if (reads_in_flight_.size() > context_.attributes.max_read_atomic)"),
    # --- queues, keys, packets
    Mutant("does not flush what it had not taken from the ring", "emulator/send_queue.cc",
           "  } while (take());", "  } while (false && take());"),
    Mutant("completes what is not signalled", "emulator/send_queue.cc",
           "context_.signal_all || request.flags.has(kSignaled) ||",
           "context_.signal_all || !request.flags.has(kFence) ||"),
    Mutant("does not look at a key's last byte", "emulator/memory.cc",
           "slot->region != nullptr && slot->region->key_ == key;",
           "slot->region != nullptr;"),
    Mutant("does not look at a region's access flags", "emulator/memory.cc",
           "if (!spec.access.has(needs)) return tl::unexpected(MemoryFault::no_permission);\n"
           "  if (spec.whole",
           "if (!spec.access.has(needs) && length == 0) {\n"
           "    return tl::unexpected(MemoryFault::no_permission);\n"
           "  }\n"
           "  if (spec.whole"),
    Mutant("a region ends one byte too late", "emulator/memory.cc",
           "length <= size && address - start <= size - length;",
           "length <= size + 1 && address - start <= size + 1 - length;"),
    Mutant("a window keeps working when invalidated", "emulator/memory.cc",
           "  window->binding_.reset();\n  return {};", "  return {};"),
    Mutant("believes a packet with a wrong ICRC", "emulator/device.cc",
           "if (!inbound.icrc_is_right) {",
           "if (!inbound.icrc_is_right && inbound.bytes.empty()) {"),
]
