// Brings what a device has to tell to the opened files whose objects it is about.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "verbs/runtime/hosted_device.h"
#include "verbs/uverbs/objects.h"

namespace urxe::verbs::uverbs {

// One per running device, whose listener it is. The device's lock is held in all calls.
class Dispatcher final : public DeviceListener {
 public:
  void add(CqObject& cq) { cqs_[cq.cq] = &cq; }
  void add(QpObject& qp) { sources_[qp.qp] = &qp; }
  void add(SrqObject& srq) { sources_[srq.srq] = &srq; }
  void remove(const CqObject& cq) { cqs_.erase(cq.cq); }
  void remove(const QpObject& qp) { sources_.erase(qp.qp); }
  void remove(const SrqObject& srq) { sources_.erase(srq.srq); }

  // `takes_port_events`: an asynchronous event file.
  void add(std::shared_ptr<EventChannel> channel, bool takes_port_events);
  void remove(const EventChannel& channel);

  void completion_event(emulator::CompletionQueue& cq) override;
  void async_event(const emulator::AsyncEvent& event) override;
  [[nodiscard]] bool is_behind() const override { return is_behind_; }
  void wait_for(std::vector<pollfd>& descriptors) const override;
  void catch_up() override;

  // In a forked child: its copies of our descriptors.
  void close_descriptors();

 private:
  struct Channel {
    std::shared_ptr<EventChannel> channel;
    bool takes_port_events;
  };
  void report(EventSource& source, emulator::AsyncEventType type);
  void report(EventChannel& channel, std::uint64_t element, emulator::AsyncEventType type);
  [[nodiscard]] EventSource* source_of(const emulator::AsyncEvent& event) const;

  std::unordered_map<const emulator::CompletionQueue*, CqObject*> cqs_;
  std::unordered_map<const void*, EventSource*> sources_;
  std::vector<Channel> channels_;
  bool is_behind_ = false;
};

}  // namespace urxe::verbs::uverbs
