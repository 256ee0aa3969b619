// What the device counts. verbs/sysfs shows them under ports/1/counters and hw_counters.
#pragma once

#include <cstdint>

namespace urxe::emulator {

struct Counters {
  std::uint64_t sent_packets = 0;
  std::uint64_t sent_bytes = 0;  // BTH to pad
  std::uint64_t received_packets = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_multicast_packets = 0;  // among those above
  std::uint64_t received_multicast_packets = 0;
  std::uint64_t port_errors = 0;  // how often the port went down

  // Received and dropped, by reason.
  std::uint64_t icrc_errors = 0;
  std::uint64_t malformed_packets = 0;
  std::uint64_t unknown_qp = 0;     // no such queue pair, or of another type
  std::uint64_t wrong_state = 0;    // the queue pair's state takes no such packet
  std::uint64_t wrong_address = 0;  // not from the connected peer
  std::uint64_t pkey_violations = 0;
  std::uint64_t qkey_violations = 0;
  std::uint64_t dropped_requests = 0;  // UC and UD: no receive posted, broken message, no access
  std::uint64_t stray_responses = 0;   // answers that no outstanding request waits for

  // RC.
  std::uint64_t duplicate_requests = 0;
  std::uint64_t out_of_sequence_requests = 0;
  std::uint64_t sent_rnr_naks = 0;
  std::uint64_t received_rnr_naks = 0;
  std::uint64_t received_sequence_naks = 0;
  std::uint64_t sent_naks = 0;  // that put the queue pair in error
  std::uint64_t received_naks = 0;
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t timeouts = 0;  // of the ACK timer
  std::uint64_t probes = 0;    // early retransmissions of one packet
  std::uint64_t retries_exceeded = 0;
  std::uint64_t rnr_retries_exceeded = 0;
  std::uint64_t lost_read_responses = 0;  // READs or atomics asked for again

  // Messages that completed.
  std::uint64_t completed_sends = 0;
  std::uint64_t completed_receives = 0;
  std::uint64_t completed_writes = 0;
  std::uint64_t completed_reads = 0;
  std::uint64_t completed_atomics = 0;
  std::uint64_t congestion_notifications_sent = 0;
  std::uint64_t congestion_notifications_received = 0;
  std::uint64_t ce_marked_packets = 0;
};

}  // namespace urxe::emulator
