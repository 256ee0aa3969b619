#include "verbs/uverbs/context.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "verbs/runtime/log.h"

namespace urxe::verbs::uverbs {
namespace {

constexpr std::size_t kMinSweep = 8;

emulator::Device& device_of(HostedDevice& host) { return *host.access(); }

// The events of one source that the program has read. `retracted` may be more than were reported,
// if the program gave two objects one user handle.
std::uint32_t events_read(const std::shared_ptr<EventChannel>& channel, std::uint64_t element,
                          std::uint32_t reported) {
  if (channel == nullptr || reported == 0) return reported;
  return reported - std::min(reported, channel->retract(element));
}

}  // namespace

Context::Context(const DeviceConfig& config, std::shared_ptr<DeviceLease> lease,
                 std::shared_ptr<Dispatcher> dispatcher, std::shared_ptr<RingMemory> rings)
    : config_(config),
      lease_(std::move(lease)),
      dispatcher_(std::move(dispatcher)),
      device_(device_of(lease_->device())),
      rings_(std::move(rings)) {
  const auto access = host().access();
  host().set_listener(dispatcher_.get());
}

Context::~Context() {
  const auto access = host().access();
  tell_what_is_left();
  destroy_all();
  for (const Channel& held : channels_) {
    dispatcher().remove(*held.channel);
    held.channel->close();
  }
}

Status Context::need_context() const {
  if (established_) return {};
  return refuse(EINVAL, "the first command must be GET_CONTEXT");
}

// --- channels

Outcome<int> Context::open_channel(ChannelUse use) {
  if (channels_.size() >= sweep_at_) sweep_channels();
  auto opened = EventChannel::open();
  if (!opened) return refuse(opened.error(), "no descriptor can be had for an event channel");
  const bool is_async = use == ChannelUse::async;
  channels_.push_back({use, opened->channel});
  dispatcher().add(opened->channel, is_async);
  if (is_async && default_async_ == nullptr) default_async_ = opened->channel;
  return opened->fd;
}

void Context::close_channel(int fd) {
  const auto found = std::find_if(channels_.begin(), channels_.end(),
                                  [fd](const Channel& held) { return held.channel->is(fd); });
  if (found == channels_.end()) return;
  dispatcher().remove(*found->channel);
  found->channel->close();
  if (default_async_ == found->channel) default_async_ = nullptr;
  channels_.erase(found);
  ::close(fd);
}

Outcome<std::shared_ptr<EventChannel>> Context::channel(ChannelUse use, int fd) const {
  for (const Channel& held : channels_) {
    if (held.use == use && held.channel->is(fd)) return held.channel;
  }
  return refuse(EBADF, fmt::format("descriptor {} is not {} of this device", fd,
                                   use == ChannelUse::async ? "an asynchronous event file"
                                                            : "a completion channel"));
}

// Programs close channels without telling us.
void Context::sweep_channels() {
  std::erase_if(channels_, [this](const Channel& held) {
    if (!held.channel->is_abandoned()) return false;
    dispatcher().remove(*held.channel);
    held.channel->close();
    return true;
  });
  sweep_at_ = std::max(kMinSweep, 2 * channels_.size());
}

// --- objects

Status Context::destroy_on_device(Object& object) {
  emulator::Result<void> result;
  switch (object.kind) {
    case Kind::pd:
      result = device_.destroy(*static_cast<PdObject&>(object).pd);
      break;
    case Kind::mr:
      result = device_.destroy(*static_cast<MrObject&>(object).region);
      break;
    case Kind::mw:
      device_.destroy(*static_cast<MwObject&>(object).window);
      break;
    case Kind::cq:
      result = device_.destroy(*static_cast<CqObject&>(object).cq);
      if (result) dispatcher().remove(static_cast<CqObject&>(object));
      break;
    case Kind::qp:
      result = device_.destroy(*static_cast<QpObject&>(object).qp);
      if (result) dispatcher().remove(static_cast<QpObject&>(object));
      break;
    case Kind::srq:
      result = device_.destroy(*static_cast<SrqObject&>(object).srq);
      if (result) dispatcher().remove(static_cast<SrqObject&>(object));
      break;
    case Kind::ah:
      device_.destroy(*static_cast<AhObject&>(object).address);
      break;
  }
  if (!result) return refuse(result.error());
  return {};
}

Status Context::attach(QpObject& object, const wire::IpAddress& group) {
  if (std::find(object.groups.begin(), object.groups.end(), group) != object.groups.end()) {
    return {};
  }
  const auto is_first = device_.attach(*object.qp, group);
  if (!is_first) return refuse(is_first.error());
  object.groups.push_back(group);
  if (!*is_first) return {};
  if (const int error = host().join(group); error != 0) {
    [[maybe_unused]] const auto detached = detach(object, group);
    return refuse(error, fmt::format("the device's interface and addresses do not allow joining {}",
                                     group.to_string()));
  }
  return {};
}

Status Context::detach(QpObject& object, const wire::IpAddress& group) {
  const auto was_last = device_.detach(*object.qp, group);
  if (!was_last) return refuse(was_last.error());
  std::erase(object.groups, group);
  if (*was_last) host().leave(group);
  return {};
}

Outcome<Context::Reported> Context::destroy(Object& object) {
  if (auto destroyed = destroy_on_device(object); !destroyed) {
    return tl::unexpected(destroyed.error());
  }
  Reported reported;
  if (auto* source = dynamic_cast<EventSource*>(&object)) {
    reported.async_events = events_read(source->async, source->user_handle, source->async_events);
  }
  if (object.kind == Kind::cq) {
    const auto& cq = static_cast<CqObject&>(object);
    reported.completion_events = events_read(cq.channel, cq.user_handle, cq.completion_events);
  }
  objects_.erase(object.handle);
  return reported;
}

// In the order in which objects need each other.
// As the kernel does, what a program leaves is destroyed. It may not know that it left something.
void Context::tell_what_is_left() const {
  if (!logs(LogLevel::info)) return;
  std::array<std::size_t, kKinds> counts{};
  for (const auto& object : objects_.all()) {
    if (object != nullptr) ++counts[static_cast<std::size_t>(object->kind)];
  }
  std::string left;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (counts[kind] == 0) continue;
    left += fmt::format("{}{} ({})", left.empty() ? "" : ", ", to_string(static_cast<Kind>(kind)),
                        counts[kind]);
  }
  if (left.empty()) return;
  log(LogLevel::info,
      fmt::format("{}: closed with objects alive, which are destroyed: {}", config_.name, left));
}

void Context::destroy_all() {
  for (const Kind kind : {Kind::qp, Kind::srq, Kind::cq, Kind::ah, Kind::mw, Kind::mr, Kind::pd}) {
    for (const auto& object : objects_.all()) {
      if (object == nullptr || object->kind != kind) continue;
      if (kind == Kind::qp) {
        auto& qp = static_cast<QpObject&>(*object);
        while (!qp.groups.empty() && detach(qp, wire::IpAddress(qp.groups.back()))) {
        }
      }
      [[maybe_unused]] const auto destroyed = destroy_on_device(*object);
    }
  }
}

}  // namespace urxe::verbs::uverbs
