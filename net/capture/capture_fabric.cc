#include "net/capture/capture_fabric.h"

#include "net/wire/opcode.h"

namespace urxe::net {
namespace {

// For a packet whose ICRC was found wrong. Which one it had is not worth knowing: it went with an
// identification that nobody knows.
constexpr std::uint32_t kWrong = 0xFFFFFFFF;

}  // namespace

void CaptureFabric::commit(Time now, const wire::Outbound& packet) {
  file_->write(now, *packet.path, slot_.first(packet.size), packet.icrc_error);
  inner_->commit(now, packet);
}

bool CaptureFabric::flush(Time now) {
  file_->flush();
  return inner_->flush(now);
}

ReceiveResult CaptureFabric::receive(Time now, Receiver& receiver, std::size_t budget) {
  receiver_ = &receiver;
  const ReceiveResult result = inner_->receive(now, *this, budget);
  receiver_ = nullptr;
  if (result.packets > 0) file_->flush();
  return result;
}

void CaptureFabric::on_packet(Time now, const wire::Inbound& packet) {
  if (packet.bytes.size() >= wire::kBthSize + wire::kIcrcSize) {
    file_->write(now, packet.path, packet.bytes.first(packet.bytes.size() - wire::kIcrcSize),
                 packet.icrc_is_right ? 0 : kWrong);
  }
  receiver_->on_packet(now, packet);
}

}  // namespace urxe::net
