// A fabric with faults: a decorator that does to packets what rules say.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/fabric.h"
#include "net/faults/injector.h"

namespace urxe::net {

// Owner: whoever runs the device. Not thread-safe.
//
// A packet that is sent is damaged where it was written, and one that came, in a copy. Packets that
// are delayed or held back wait here; next_deadline says until when.
class FaultFabric final : public Fabric, private Receiver {
 public:
  FaultFabric(std::unique_ptr<Fabric> inner, std::vector<Rule> rules, std::uint64_t seed)
      : inner_(std::move(inner)), injector_(std::move(rules), seed) {}

  [[nodiscard]] const Injector& injector() const { return injector_; }

  wire::MutableBytes reserve() override { return slot_ = inner_->reserve(); }
  void commit(Time now, const wire::Outbound& packet) override;
  bool flush(Time now) override;
  ReceiveResult receive(Time now, Receiver& receiver, std::size_t budget) override;
  [[nodiscard]] Time next_deadline() const override;
  void wait_for(std::vector<pollfd>& descriptors) const override { inner_->wait_for(descriptors); }
  int join(const wire::IpAddress& group) override { return inner_->join(group); }
  int leave(const wire::IpAddress& group) override { return inner_->leave(group); }

 private:
  // A packet that waits. Sent: BTH to pad; received: to ICRC.
  struct Waiting {
    wire::Path path;
    std::vector<std::uint8_t> bytes;
    std::uint32_t icrc_error = 0;  // sent
    bool icrc_is_right = false;    // received
    Time due{};
    std::uint32_t packets_to_pass = 0;  // it goes when that many have passed; 0: only by time
  };
  // What waits in one direction, in the order in which it came.
  class WaitingRoom {
   public:
    void add(Waiting packet) { packets_.push_back(std::move(packet)); }
    // A packet went past.
    void note_passing();
    // Takes one packet that must wait no longer.
    [[nodiscard]] std::optional<Waiting> take_due(Time now);
    void put_back(Waiting packet) { packets_.push_front(std::move(packet)); }
    [[nodiscard]] Time next_deadline() const;

   private:
    std::deque<Waiting> packets_;
  };

  void on_packet(Time now, const wire::Inbound& packet) override;
  void on_unreachable(Time now, const wire::IpAddress& destination) override {
    receiver_->on_unreachable(now, destination);
  }
  void wait(Time now, const Verdict& verdict, WaitingRoom& room, Waiting packet);
  // Sends it through the inner fabric; false if that takes no more now.
  bool send(Time now, const Waiting& packet);
  void send_due(Time now);
  void deliver(Time now, const Waiting& packet);
  std::size_t deliver_due(Time now);

  std::unique_ptr<Fabric> inner_;
  Injector injector_;
  wire::MutableBytes slot_;       // the inner fabric's
  Receiver* receiver_ = nullptr;  // during receive
  bool inner_is_full_ = false;
  WaitingRoom to_send_;
  WaitingRoom to_deliver_;
};

}  // namespace urxe::net
