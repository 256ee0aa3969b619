// The responder of UC and UD: nothing is answered, what cannot be used is dropped and counted.
#include <array>

#include "emulator/responder.h"
#include "net/wire/frame.h"

namespace urxe::emulator {
namespace {

// A UD receive begins with the packet's network header: an IPv6 header, or 20 bytes of nothing and
// an IPv4 header (IBTA annex A17.4.5.2).
constexpr std::size_t kGrhSize = 40;

// IBTA annex A17.4.5.1 wants a completion to say which of the two it is, and libibverbs has no
// place for that. NICs (mlx5) use the service level, which Ethernet has none of, and UCX relies on
// it.
constexpr std::uint8_t kIpv6OverUdp = 8 + 1;
constexpr std::uint8_t kIpv4OverUdp = 8 + 2;

std::array<std::uint8_t, kGrhSize> network_header(const wire::Inbound& inbound) {
  std::array<std::uint8_t, wire::kIpv6Size + wire::kUdpSize> headers{};
  wire::write_ip_udp(headers, inbound.path, wire::Ipv4Fragment{}, inbound.bytes.size());
  std::array<std::uint8_t, kGrhSize> header{};
  const bool v4 = inbound.path.source.is_v4();
  const std::size_t size = v4 ? wire::kIpv4Size : wire::kIpv6Size;
  std::copy_n(headers.begin(), size, header.end() - static_cast<std::ptrdiff_t>(size));
  return header;
}

}  // namespace

// The receive of a broken message serves the next one.
void Responder::abandon_message() {
  message_ = Message::none;
  received_ = 0;
  position_.rewind();
}

Step Responder::check_unreliable_sequence(const wire::Packet& packet) {
  const bool in_sequence = packet.bth.psn == expected_ && !drop_message_;
  expected_ = packet.bth.psn;
  if (packet.info->starts_message()) {
    if (message_ != Message::none) abandon_message();
    drop_message_ = false;
    return Step::proceed;
  }
  if (!in_sequence || message_ == Message::none) return Step::drop;
  const bool write = packet.info->operation == wire::Operation::rdma_write;
  return (message_ == Message::write) == write ? Step::proceed : Step::drop;
}

void Responder::handle_unreliable(const wire::Packet& packet) {
  using Check = Step (Responder::*)(const wire::Packet&);
  static constexpr Check kChecks[] = {
      &Responder::check_unreliable_sequence,
      &Responder::check_operation,
      &Responder::check_length,
      &Responder::check_receive,
      &Responder::check_key,
      &Responder::execute,
  };
  for (const Check check : kChecks) {
    const Step step = (this->*check)(packet);
    if (step == Step::proceed) continue;
    ++context_.engine.counters.dropped_requests;
    if (step == Step::operational_error) {
      complete_receive(packet, receive_status_);
      context_.collapse = Collapse::by_responder;
      context_.collapse_event = AsyncEventType::qp_fatal;
    }
    receive_status_ = CompletionStatus::success;
    receive_fault_ = VendorError::none;
    drop_message_ = true;
    ++expected_;
    abandon_message();
    return;
  }
  finish_packet(packet);
}

void Responder::handle_datagram(const wire::Packet& packet, const wire::Inbound& inbound) {
  const std::size_t size = kGrhSize + packet.payload.size();
  const auto drop = [this] { ++context_.engine.counters.dropped_requests; };
  if (!has_receive_) {
    if (!context_.receive_queue->take(receive_)) return drop();
    has_receive_ = true;
  }
  position_.rewind();
  header_type_ = inbound.path.source.is_v4() ? kIpv4OverUdp : kIpv6OverUdp;
  if (receive_.malformed) {
    receive_status_ = CompletionStatus::local_qp_operation_error;
    receive_fault_ = VendorError::malformed_request;
  } else if (size > receive_.length) {
    explain(
        "QP {:#x}: a datagram of {} bytes came, the receive request (wr_id {:#x}) holds {}, of "
        "which 40 are for the network header",
        context_.qpn.value(), packet.payload.size(), receive_.wr_id, receive_.length);
    return drop();
  } else if (scatter(network_header(inbound)) == Step::proceed) {
    static_cast<void>(scatter(packet.payload));  // a fault is in receive_status_
  }
  received_ = size;
  const CompletionStatus status = receive_status_;
  complete_receive(packet, status);
  if (status == CompletionStatus::success) return;
  context_.collapse = Collapse::by_responder;
  context_.collapse_event = AsyncEventType::qp_fatal;
}

}  // namespace urxe::emulator
