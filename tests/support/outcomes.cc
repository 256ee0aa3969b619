#include "tests/support/outcomes.h"

namespace urxe::test {

std::vector<emulator::CompletionStatus> statuses(const CompletionDouble& sink) {
  std::vector<emulator::CompletionStatus> statuses;
  for (const emulator::Completion& completion : sink.completions) {
    statuses.push_back(completion.status);
  }
  return statuses;
}

std::vector<emulator::AsyncEventType> take_events(emulator::Device& device) {
  std::vector<emulator::AsyncEventType> types;
  while (const auto event = device.poll_async_event()) types.push_back(event->type);
  return types;
}

std::vector<wire::Aeth> acknowledgements(const DevicePair& pair, int from) {
  std::vector<wire::Aeth> found;
  for (const WirePacket& packet : pair.log) {
    if (packet.from != from) continue;
    const wire::Packet parsed = packet.parsed();
    if (parsed.info->operation == wire::Operation::acknowledge) found.push_back(parsed.aeth);
  }
  return found;
}

std::vector<WirePacket> requests(const DevicePair& pair, int from) {
  std::vector<WirePacket> found;
  for (const WirePacket& packet : pair.log) {
    if (packet.from == from && !packet.parsed().info->is_response()) found.push_back(packet);
  }
  return found;
}

}  // namespace urxe::test
