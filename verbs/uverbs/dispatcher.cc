#include "verbs/uverbs/dispatcher.h"

#include <algorithm>
#include <span>
#include <utility>

#include <rdma/ib_user_verbs.h>

#include "verbs/config/device_config.h"

namespace urxe::verbs::uverbs {

void Dispatcher::add(std::shared_ptr<EventChannel> channel, bool takes_port_events) {
  channels_.push_back({std::move(channel), takes_port_events});
}

void Dispatcher::remove(const EventChannel& channel) {
  std::erase_if(channels_, [&](const Channel& held) { return held.channel.get() == &channel; });
}

// --- events

void Dispatcher::completion_event(emulator::CompletionQueue& cq) {
  const auto found = cqs_.find(&cq);
  if (found == cqs_.end() || found->second->channel == nullptr) return;
  CqObject& object = *found->second;
  const ib_uverbs_comp_event_desc event{.cq_handle = object.user_handle};
  object.channel->report(std::as_bytes(std::span(&event, 1)));
  ++object.completion_events;
  is_behind_ = is_behind_ || object.channel->is_behind();
}

EventSource* Dispatcher::source_of(const emulator::AsyncEvent& event) const {
  if (const auto* cq = std::get_if<emulator::CompletionQueue*>(&event.source)) {
    const auto found = cqs_.find(*cq);
    return found == cqs_.end() ? nullptr : found->second;
  }
  const void* key = nullptr;
  if (const auto* qp = std::get_if<emulator::QueuePair*>(&event.source)) key = *qp;
  if (const auto* queue = std::get_if<emulator::ReceiveQueue*>(&event.source)) {
    key = static_cast<const emulator::SharedReceiveQueue*>(*queue);
  }
  const auto found = sources_.find(key);
  return found == sources_.end() ? nullptr : found->second;
}

void Dispatcher::async_event(const emulator::AsyncEvent& event) {
  if (!std::holds_alternative<std::monostate>(event.source)) {
    if (EventSource* source = source_of(event)) report(*source, event.type);
    return;
  }
  for (const Channel& held : channels_) {
    if (held.takes_port_events) report(*held.channel, kPort, event.type);
  }
}

void Dispatcher::report(EventSource& source, emulator::AsyncEventType type) {
  if (source.async == nullptr) return;
  report(*source.async, source.user_handle, type);
  ++source.async_events;
}

void Dispatcher::report(EventChannel& channel, std::uint64_t element,
                        emulator::AsyncEventType type) {
  const ib_uverbs_async_event_desc event{
      .element = element, .event_type = static_cast<std::uint32_t>(type), .reserved = 0};
  channel.report(std::as_bytes(std::span(&event, 1)));
  is_behind_ = is_behind_ || channel.is_behind();
}

// --- descriptors that are full

void Dispatcher::wait_for(std::vector<pollfd>& descriptors) const {
  if (!is_behind_) return;
  for (const Channel& held : channels_) {
    if (!held.channel->is_behind()) continue;
    descriptors.push_back({.fd = held.channel->writer(), .events = POLLOUT, .revents = 0});
  }
}

void Dispatcher::catch_up() {
  is_behind_ = false;
  for (const Channel& held : channels_) {
    held.channel->catch_up();
    is_behind_ = is_behind_ || held.channel->is_behind();
  }
}

void Dispatcher::close_descriptors() {
  for (const Channel& held : channels_) held.channel->close();
}

}  // namespace urxe::verbs::uverbs
