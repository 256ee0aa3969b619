#include "tests/support/hosted_double.h"

#include <array>
#include <utility>

namespace urxe::test {
namespace {

constexpr std::uint32_t kFirstQpn = 0x4000;
constexpr std::uint32_t kQpns = 1024;
constexpr Duration kLatency = std::chrono::microseconds(10);
constexpr int kMaxSteps = 100000;

class LeaseDouble final : public verbs::DeviceLease {
 public:
  explicit LeaseDouble(std::shared_ptr<HostedDouble> device) : device_(std::move(device)) {}
  [[nodiscard]] verbs::HostedDevice& device() override { return *device_; }
  [[nodiscard]] std::uint64_t fabric_counter(std::string_view) override { return 0; }

 private:
  std::shared_ptr<HostedDouble> device_;
};

emulator::DeviceOptions options() {
  emulator::DeviceOptions options;
  options.port_mtu = emulator::Mtu::bytes4096;
  return options;
}

}  // namespace

HostedDouble::HostedDouble(const std::vector<wire::IpAddress>& addresses)
    : device_(options(), memory_, {wire::Qpn{kFirstQpn}, kQpns}) {
  device_.assign_gids(addresses);
}

void HostedDouble::transmit() {
  std::array<std::uint8_t, 4160> slot;
  while (const auto outbound = device_.poll_transmit(now_, slot)) {
    Packet packet{.path = *outbound->path, .bytes = {}};
    packet.bytes.assign(slot.begin(), slot.begin() + static_cast<std::ptrdiff_t>(outbound->size));
    packet.bytes.resize(packet.bytes.size() + wire::kIcrcSize);
    in_flight_.push_back(std::move(packet));
  }
}

void HostedDouble::publish() {
  if (listener_ == nullptr) return;
  while (emulator::CompletionQueue* cq = device_.poll_completion_event()) {
    listener_->completion_event(*cq);
  }
  while (const auto event = device_.poll_async_event()) listener_->async_event(*event);
  if (listener_->is_behind()) listener_->catch_up();
}

void HostedDouble::settle(Haste) {
  transmit();
  publish();
}

void HostedDouble::drive() {
  const std::scoped_lock lock(mutex_);
  device_.flush_posted_receives();
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    transmit();
    if (!in_flight_.empty()) {
      const Packet packet = std::move(in_flight_.front());
      in_flight_.pop_front();
      now_ += kLatency;
      device_.handle_packet(now_,
                            {.path = packet.path, .bytes = packet.bytes, .icrc_is_right = true});
    } else if (device_.next_deadline() != kNever) {
      now_ = std::max(now_, device_.next_deadline());
      device_.handle_timer(now_);
    } else {
      break;
    }
  }
  publish();
}

tl::expected<std::shared_ptr<verbs::DeviceLease>, int> SourceDouble::acquire() {
  if (error != 0) return tl::unexpected(error);
  return std::make_shared<LeaseDouble>(device_);
}

}  // namespace urxe::test
