// A fabric whose packets are captured: a decorator.
#pragma once

#include <memory>
#include <vector>

#include "net/capture/capture_file.h"
#include "net/fabric.h"

namespace urxe::net {

// Owner: whoever runs the device. Not thread-safe, but the file is.
//
// One frame per packet, whatever buffers the kernel gets or gives. A packet that leaves is written
// when it is committed, one that came before the receiver has it. An IPv4 identification is always
// 0 (a socket does not show that of packets that came, and the ICRC is recomputed for it), and a
// packet that leaves shows the source port that its path asks for.
class CaptureFabric final : public Fabric, private Receiver {
 public:
  CaptureFabric(std::unique_ptr<Fabric> inner, std::shared_ptr<CaptureFile> file)
      : inner_(std::move(inner)), file_(std::move(file)) {}

  wire::MutableBytes reserve() override { return slot_ = inner_->reserve(); }
  void commit(Time now, const wire::Outbound& packet) override;
  bool flush(Time now) override;
  ReceiveResult receive(Time now, Receiver& receiver, std::size_t budget) override;
  [[nodiscard]] Time next_deadline() const override { return inner_->next_deadline(); }
  void wait_for(std::vector<pollfd>& descriptors) const override { inner_->wait_for(descriptors); }
  int join(const wire::IpAddress& group) override { return inner_->join(group); }
  int leave(const wire::IpAddress& group) override { return inner_->leave(group); }

 private:
  void on_packet(Time now, const wire::Inbound& packet) override;
  void on_unreachable(Time now, const wire::IpAddress& destination) override {
    receiver_->on_unreachable(now, destination);
  }

  std::unique_ptr<Fabric> inner_;
  std::shared_ptr<CaptureFile> file_;
  wire::MutableBytes slot_;       // the inner fabric's
  Receiver* receiver_ = nullptr;  // during receive
};

}  // namespace urxe::net
