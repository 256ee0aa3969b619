// The receiving half of a queue pair: executes a peer's requests and answers them
// (IBTA 9.7.4, 9.7.5, 9.8.2.2, 9.8.3.2).
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/qp_context.h"
#include "emulator/ring.h"
#include "net/wire/packet.h"
#include "net/wire/path.h"

namespace urxe::emulator {

// A request passes a line of small checks; each says what becomes of it.
enum class Step : std::uint8_t {
  proceed,
  drop,                // silently: counted
  out_of_sequence,     // RC: NAK once
  duplicate,           // RC: answered again, not executed again
  receiver_not_ready,  // RC: RNR NAK
  invalid_request,     // RC: NAK, and the queue pair ends in error; so the next three
  access_error,
  operational_error,  // this side's receive request is at fault: it completes in error
  silent_error,       // no NAK (IBTA class J)
};

// Owner: the queue pair. Not thread-safe.
class Responder {
 public:
  explicit Responder(QpContext& context) : context_(context) {}

  // INIT to RTR.
  void start(wire::Psn first);
  void reset();
  // Completes the receive in progress and all that are posted as flushed (ERROR).
  void flush_receives();
  // Forgets answers that were not sent yet.
  void drop_responses() { responses_.release(); }

  void handle_request(const wire::Packet& packet, const wire::Inbound& inbound);

  [[nodiscard]] bool has_output() const { return !responses_.empty(); }
  // An answer waits that must leave before the next request changes what it reads.
  [[nodiscard]] bool reads_memory() const {
    return !responses_.empty() && responses_.front().kind == Response::Kind::read;
  }
  // Writes the next answer into `slot`; its size, or nothing.
  [[nodiscard]] std::optional<std::size_t> poll_transmit(wire::MutableBytes slot);

 private:
  enum class Message : std::uint8_t { none, send, write };

  // A request with a response of its own that was executed, kept to answer a duplicate (IBTA
  // 9.7.4.1.2).
  struct Resource {
    enum class Kind : std::uint8_t { atomic, placement, read };
    wire::Psn first;
    std::uint32_t packets = 0;
    wire::Reth read;              // READ
    std::uint64_t old_value = 0;  // atomic: what the answer said
    Kind kind{};
  };
  // An answer that waits to be sent.
  struct Response {
    enum class Kind : std::uint8_t { acknowledge, atomic, placement, read };
    Kind kind{};
    wire::Syndrome syndrome;
    wire::Psn psn;
    wire::Msn msn;
    std::uint64_t old_value = 0;  // atomic
    wire::Reth rest;              // READ: what is still to be sent
    bool started = false;         // READ: the first packet has left
    bool replay = false;          // answers a duplicate
  };

  // --- RC
  void handle_reliable(const wire::Packet& packet);
  [[nodiscard]] Step check_psn(const wire::Packet& packet);
  [[nodiscard]] Step check_sequence(const wire::Packet& packet);
  [[nodiscard]] Step check_operation(const wire::Packet& packet);
  [[nodiscard]] Step check_flush(const wire::Packet& packet);
  [[nodiscard]] Step check_length(const wire::Packet& packet);
  [[nodiscard]] Step check_write_length(const wire::Packet& packet);
  [[nodiscard]] Step check_receive(const wire::Packet& packet);
  [[nodiscard]] Step check_key(const wire::Packet& packet);
  [[nodiscard]] Step execute(const wire::Packet& packet);
  void refuse(Step step, const wire::Packet& packet);
  void refuse_finally(Step step, const wire::Packet& packet);
  void answer_duplicate(const wire::Packet& packet);
  void answer_duplicate_read(const wire::Packet& packet);
  void answer_duplicate_at_once(const wire::Packet& packet);

  // --- execution
  [[nodiscard]] Step execute_send(const wire::Packet& packet);
  [[nodiscard]] Step execute_write(const wire::Packet& packet);
  [[nodiscard]] Step execute_read(const wire::Packet& packet);
  [[nodiscard]] Step execute_atomic(const wire::Packet& packet);
  [[nodiscard]] Step execute_placement(const wire::Packet& packet);
  [[nodiscard]] Step invalidate(const wire::Packet& packet);
  void begin_message(const wire::Packet& packet);
  void finish_packet(const wire::Packet& packet);
  void complete_receive(const wire::Packet& packet, CompletionStatus status);
  [[nodiscard]] Step scatter(wire::Bytes data);

  // --- answers
  void acknowledge(wire::Syndrome syndrome, wire::Psn psn);
  void remember(const Resource& resource);
  [[nodiscard]] const Resource* find_resource(wire::Psn psn) const;
  [[nodiscard]] bool is_answering(wire::Psn psn) const;
  [[nodiscard]] std::uint32_t read_atomic_depth() const;
  [[nodiscard]] std::uint32_t pending_reads_and_atomics(bool replays) const;
  // The opcode of an answer without payload.
  [[nodiscard]] static wire::Opcode short_answer(Response::Kind kind);
  [[nodiscard]] std::optional<std::size_t> refuse_read(MemoryFault fault);
  [[nodiscard]] std::optional<std::size_t> refuse_replay(wire::MutableBytes slot);
  [[nodiscard]] std::optional<std::size_t> send_read_response(wire::MutableBytes slot);

  // --- UC and UD (responder_datagram.cc)
  void handle_unreliable(const wire::Packet& packet);
  [[nodiscard]] Step check_unreliable_sequence(const wire::Packet& packet);
  void handle_datagram(const wire::Packet& packet, const wire::Inbound& inbound);
  void abandon_message();

  template <typename... Args>
  void explain(fmt::format_string<Args...> format, Args&&... args) {
    context_.engine.explanations.add(format, std::forward<Args>(args)...);
  }

  QpContext& context_;
  wire::Psn expected_;
  wire::Msn msn_;
  bool nak_sent_ = false;      // RC: say nothing more until the expected packet comes
  bool drop_message_ = false;  // UC: drop packets until a message begins

  // The message in progress.
  Message message_ = Message::none;
  std::uint64_t address_ = 0;  // WRITE: where the next byte goes
  wire::RKey rkey_;
  std::uint64_t remaining_ = 0;  // WRITE: bytes to come
  std::uint64_t received_ = 0;   // bytes so far

  // The receive request in progress, if any. UC may keep one from a message that it dropped.
  bool has_receive_ = false;
  VendorError receive_fault_ = VendorError::none;
  std::uint8_t header_type_ = 0;  // of the datagram that is received
  CompletionStatus receive_status_ = CompletionStatus::success;
  ReceiveRequest receive_;
  SgePosition position_;

  Ring<Resource> resources_;
  Ring<Response> responses_;
};

}  // namespace urxe::emulator
