// The sending half of a queue pair: turns send requests into packets (IBTA 9.7.3, 9.8.2, 9.8.3).
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/peer.h"
#include "emulator/qp_context.h"
#include "emulator/ring.h"
#include "emulator/send_queue.h"
#include "net/wire/packet.h"
#include "net/wire/path.h"
#include "net/wire/time.h"

namespace urxe::emulator {

// Keeps the send side's sequence numbers. For RC:
//
//        una_psn            send_psn             next_psn
//   ------|===================|--------------------|-------------
//   acknowledged   in flight    to be sent again       never sent
//
// send_psn == next_psn but after a loss, when it went back to una_psn (go-back-N). `cursor` says
// which request and which of its packets has send_psn.
//
// Owner: the queue pair. Not thread-safe.
class Requester final : public WindowWaiter {
 public:
  // `on_output` is told when there may be something to send again.
  class Owner {
   public:
    virtual void requester_has_output() = 0;

   protected:
    ~Owner() = default;
  };

  Requester(QpContext& context, SendQueue& queue, Owner& owner)
      : context_(context), queue_(queue), owner_(owner) {}
  ~Requester() override { reset(); }
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // RTR to RTS.
  void start(wire::Psn first);
  // SQE to RTS: goes on with what is posted from now on.
  void resume() { cursor_ = queue_.end(); }
  // Forgets all sequence state and gives back what it holds of windows. Requests stay in the queue.
  void reset();

  // It may not send now, for a reason of its owner's: room goes to those behind it in line.
  void pass_on_turn();

  // Writes the next packet into `slot`; nothing if there is none to send now. The path of a UD
  // packet is its own, of others the queue pair's.
  struct Output {
    std::size_t size;
    const wire::Path* path;
  };
  [[nodiscard]] std::optional<Output> poll_transmit(Time now, wire::MutableBytes slot);

  [[nodiscard]] Time deadline() const;
  void handle_timer(Time now);

  // --- for the completer, which reads acknowledgements

  [[nodiscard]] wire::Psn una_psn() const { return una_psn_; }
  // Whether a request with this PSN was sent and is not acknowledged.
  [[nodiscard]] bool is_outstanding(wire::Psn psn) const {
    return psn.in_window(una_psn_, outstanding_packets());
  }
  // Everything before `psn` is acknowledged.
  void acknowledge_before(wire::Psn psn, Time now);
  // A packet was lost: send again from una_psn. Counts as a retry; false if there are none left.
  [[nodiscard]] bool retry(Time now);
  // The same without counting: the peer lives, it answered a probe.
  void resend(Time now);
  // The peer has no receive for una_psn yet: wait, then send again. False if there are no more
  // retries.
  [[nodiscard]] bool wait_for_receiver(Time now, Duration delay);
  // READ responses come that are of no use any more, or not yet: what was asked for again stands in
  // the peer's queue behind them, and a probe would only make that longer.
  void hear_busy_peer(Time now);
  // Whether the packet with this PSN was sent as a probe: an acknowledgement that ends there says
  // that what followed it was lost.
  [[nodiscard]] bool was_probed(wire::Psn psn) const { return probed_psn_ == psn; }
  // Whether the requester went back to this PSN and nothing was acknowledged since.
  [[nodiscard]] bool already_went_back_to(wire::Psn psn) const { return went_back_to_ == psn; }
  [[nodiscard]] bool waits_for_receiver() const { return waits_for_receiver_; }
  // The oldest request fails, and with it the queue pair.
  void fail_oldest(CompletionStatus status, VendorError why);
  // The oldest request that is not acknowledged.
  [[nodiscard]] std::optional<std::uint32_t> find_unacknowledged();

  // --- draining (SQD)

  // Nothing that was started is unfinished.
  [[nodiscard]] bool is_drained() const;

  void window_opened() override { owner_.requester_has_output(); }

 private:
  // What a packet costs a peer's socket buffer besides its payload, about.
  static constexpr std::uint32_t kPacketOverhead = 192;
  static constexpr std::uint32_t kNoReadWindow = 8U << 23;
  static constexpr std::uint32_t kLeastReadWindow = 32;  // chance loses a packet now and then

  // What keeps the requester from sending.
  enum class Wait : std::uint8_t {
    nothing,    // it may send
    work,       // nothing is posted
    elsewhere,  // an answer, a timer or a state change: whoever brings it calls again
    window,     // the peer's window or the budget of reads: it is in a waiting list
  };
  struct ReadInFlight {
    wire::Psn end;
    std::uint32_t bytes_left;
  };

  [[nodiscard]] std::uint32_t outstanding_packets() const {
    return static_cast<std::uint32_t>(next_psn_.ahead_of(una_psn_));
  }
  [[nodiscard]] bool may_send(Time now) const;
  // Makes the cursor point at a request that has a packet to send, executing local requests on the
  // way.
  Wait find_work();
  Wait start_work(Work& work);
  void execute_local(Work& work);
  [[nodiscard]] std::optional<CompletionStatus> refuse(Work& work) const;
  [[nodiscard]] std::optional<CompletionStatus> refuse_list(Work& work) const;
  // What goes again after a loss does not wait until others, who may get no answers, leave room:
  // its retries count.
  [[nodiscard]] Wait check_windows(const Work& work);
  // Whether a window has room for a packet; if not, the queue pair stands in line until it has room
  // for `turn` bytes.
  template <typename Window>
  [[nodiscard]] Wait ask_for_room(Window& window, std::uint32_t packet, std::uint32_t turn);
  void offer_rooms();

  [[nodiscard]] std::uint32_t read_piece() const;
  [[nodiscard]] std::uint32_t read_packets(const Work& work, std::uint32_t from) const;
  [[nodiscard]] const wire::Path* path_of(Work& work);

  [[nodiscard]] std::optional<Output> send_current(Time now, wire::MutableBytes slot);
  [[nodiscard]] bool must_ask_for_ack(std::uint32_t payload);
  [[nodiscard]] std::optional<Output> send_probe(wire::MutableBytes slot);
  void after_send(Work& work, std::uint32_t packets, std::uint32_t payload, Time now);
  void finish_unacknowledged(Work& work);
  // A local error: the request fails as soon as those before it have completed.
  void halt(Work& work, CompletionStatus status, VendorError why);
  void fail_memory(Work& work, const LocalFault& fault);
  // Completes what is done and notes whether that ends the queue pair.
  void complete_requests();

  void release_acknowledged(wire::Psn psn);
  [[nodiscard]] std::uint32_t release_part(const Work& work, wire::Psn psn);
  void settle_reads(wire::Psn psn, std::uint32_t bytes);
  void go_back();
  void give_up_read_budget();
  void shrink_read_window();
  void move_cursor_to(wire::Psn psn);
  void restart_timers(Time now);
  void explain_no_answer();
  [[nodiscard]] Duration ack_timeout() const;  // the first; each retry doubles it
  [[nodiscard]] Duration longest_ack_timeout() const;
  [[nodiscard]] Duration probe_delay() const;
  void measure(wire::Psn acknowledged, Time now);

  QpContext& context_;
  SendQueue& queue_;
  Owner& owner_;
  Use<Peer> peer_;

  wire::Psn una_psn_;
  wire::Psn send_psn_;
  wire::Psn next_psn_;
  std::uint32_t cursor_ = 0;          // ordinal of the request that has send_psn_
  std::uint32_t cursor_packet_ = 0;   // which of its packets
  SgePosition position_;              // in its scatter/gather list...
  bool position_is_current_ = false;  // ... unless the cursor jumped

  std::uint32_t in_flight_bytes_ = 0;  // charged to the peer's window, for [una_psn_, send_psn_)
  std::uint32_t bytes_since_ack_request_ = 0;
  wire::Psn asked_psn_;                 // the packet that asked for an acknowledgement last
  Ring<ReadInFlight> reads_in_flight_;  // READs and atomics that were asked for, oldest first
  // How many PSNs may be on their way when one more READ is asked for, in eighths: what a responder
  // or the path can queue. No limit until something is lost.
  std::uint32_t read_window_eighths_ = kNoReadWindow;

  std::uint8_t retries_ = 0;
  std::uint8_t rnr_retries_ = 0;
  std::uint8_t probes_ = 0;  // in a row without progress
  bool probe_is_due_ = false;
  std::optional<wire::Psn> probed_psn_;
  // A probe asked again for the responses before this PSN. If they came, and then nothing for as
  // long as a probe waits, the requests behind were lost with the first.
  std::optional<wire::Psn> asked_again_until_;
  std::optional<wire::Psn> went_back_to_;
  Time ack_deadline_ = kNever;
  Time probe_deadline_ = kNever;
  Time receiver_ready_at_{};  // after an RNR NAK: when to try again
  bool waits_for_receiver_ = false;

  // The round trip as RFC 6298 estimates it.
  std::optional<wire::Psn> timed_psn_;
  Time timed_since_{};
  Duration smoothed_round_trip_{};
  Duration round_trip_variation_{};
  wire::Path datagram_path_;
};

}  // namespace urxe::emulator
