#include "net/udp/udp_fabric.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <random>

#include <fmt/core.h>

#include "net/udp/sockets.h"
#include "net/wire/opcode.h"

namespace urxe::net {
namespace {

constexpr std::size_t kMinPacket = wire::kBthSize + wire::kIcrcSize;

// The last packet of a datagram may be shorter than the others.
wire::Bytes segment_at(const Datagram& datagram, std::size_t at) {
  return datagram.bytes.subspan(at, std::min(datagram.segment_size, datagram.bytes.size() - at));
}

std::size_t packets_in(const Datagram& datagram) {
  return (datagram.bytes.size() + datagram.segment_size - 1) / datagram.segment_size;
}

Time monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time{std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)};
}

// Tells our probes from others'. Not a secret that matters.
std::uint64_t random_nonce() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

Error cannot_wait(int code) {
  return {code, fmt::format("a socket cannot be waited for: {}", std::strerror(code))};
}

struct NamedCounter {
  std::string_view name;
  std::uint64_t UdpCounters::*counter;
};
constexpr std::array kCounters{
    NamedCounter{"sent_packets", &UdpCounters::sent_packets},
    NamedCounter{"received_packets", &UdpCounters::received_packets},
    NamedCounter{"send_errors", &UdpCounters::send_errors},
    NamedCounter{"receive_drops", &UdpCounters::receive_drops},
    NamedCounter{"malformed", &UdpCounters::malformed},
    NamedCounter{"handed_over", &UdpCounters::handed_over},
    NamedCounter{"taken_over", &UdpCounters::taken_over},
    NamedCounter{"hand_over_drops", &UdpCounters::hand_over_drops},
    NamedCounter{"ownerless", &UdpCounters::ownerless},
    NamedCounter{"refused_letters", &UdpCounters::refused_letters},
};

}  // namespace

// --- opening

tl::expected<std::unique_ptr<UdpFabric>, Error> UdpFabric::open(const UdpOptions& options) {
  if (options.addresses.empty()) {
    return tl::unexpected(Error{EADDRNOTAVAIL, "the device has no IP address"});
  }
  std::vector<Descriptor> sockets;
  for (const LocalAddress& local : options.addresses) {
    auto socket = open_receiver(local, options);
    if (!socket) return tl::unexpected(socket.error());
    sockets.push_back(std::move(*socket));
  }
  std::unique_ptr<UdpFabric> fabric(new UdpFabric(options, can_segment(sockets[0].number())));
  if (!fabric->epoll_.is_open()) return tl::unexpected(cannot_wait(errno));
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const auto added = fabric->add(options.addresses[i], std::move(sockets[i]));
    if (!added) return tl::unexpected(added.error());
  }
  const auto slot = fabric->claim_slot();
  if (!slot) return tl::unexpected(slot.error());
  fabric->steering_.probe_all(monotonic_now(), *slot);
  return fabric;
}

UdpFabric::UdpFabric(const UdpOptions& options, bool can_segment)
    : options_(options),
      epoll_(epoll_create1(EPOLL_CLOEXEC), options.keep_descriptor),
      steering_(random_nonce(), options.keep_descriptor),
      sender_(options, can_segment),
      held_(options.keep_descriptor) {
  if (held_.timer().is_open()) static_cast<void>(watch(held_.timer(), kTimerId));
  // Errors show whatever is asked for.
  sender_.set_on_manager(
      [this](const Descriptor& socket) { static_cast<void>(watch(socket, kManagerId, 0)); });
}

tl::expected<void, Error> UdpFabric::add(const LocalAddress& local, Descriptor socket) {
  auto added = std::make_unique<ReceiveSocket>(
      ReceiveSocket{.address = local.address, .socket = std::move(socket), .id = ++last_id_});
  if (const int failed = watch(added->socket, added->id); failed != 0) {
    return tl::unexpected(cannot_wait(failed));
  }
  sender_.add(local, added->socket);
  steering_.add(local, added->socket);
  sockets_.push_back(std::move(added));
  return {};
}

tl::expected<void, Error> UdpFabric::add_address(const LocalAddress& local) {
  if (is_ours(local.address)) return {};
  auto socket = open_receiver(local, options_);
  if (!socket) return tl::unexpected(socket.error());
  if (auto added = add(local, std::move(*socket)); !added) return added;
  steering_.probe_all(monotonic_now(), slots_.front().slot);
  return {};
}

int UdpFabric::watch(const Descriptor& source, std::uint32_t id, std::uint32_t events) const {
  epoll_event event{.events = events, .data = {.u32 = id}};
  return epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, source.number(), &event) == 0 ? 0 : errno;
}

int UdpFabric::receive_buffer() const {
  int smallest = receive_buffer_of(sockets_.front()->socket.number());
  for (const auto& socket : sockets_) {
    smallest = std::min(smallest, receive_buffer_of(socket->socket.number()));
  }
  return smallest;
}

// --- claims

tl::expected<Slot, Error> UdpFabric::claim_slot() {
  auto mailbox = Mailbox::create(options_.keep_descriptor);
  if (!mailbox) return tl::unexpected(cannot_wait(mailbox.error()));
  for (std::uint32_t number = 0; number < kSlotCount; ++number) {
    const Slot slot{number};
    const int error = mailbox->claim(mailbox_of(slot));
    if (error == EADDRINUSE) continue;
    if (error != 0) return tl::unexpected(cannot_wait(error));
    const std::uint32_t id = ++last_id_;
    if (const int failed = watch(mailbox->socket(), id); failed != 0) {
      return tl::unexpected(cannot_wait(failed));
    }
    slots_.push_back({.slot = slot, .id = id, .mailbox = std::move(*mailbox)});
    return slot;
  }
  return tl::unexpected(
      Error{EADDRINUSE, fmt::format("all {} shares of the queue pair numbers are taken: too many "
                                    "open devices in this network namespace",
                                    kSlotCount)});
}

int UdpFabric::claim_name(const std::string& name) {
  auto mailbox = Mailbox::open(mailbox_of_name(name), options_.keep_descriptor);
  if (!mailbox) return mailbox.error();
  const std::uint32_t id = ++last_id_;
  if (const int failed = watch(mailbox->socket(), id); failed != 0) return failed;
  names_.push_back({.name = mailbox_of_name(name), .id = id, .mailbox = std::move(*mailbox)});
  return 0;
}

void UdpFabric::release_name(const std::string& name) {
  const auto held = std::find_if(
      names_.begin(), names_.end(),
      [mailbox = mailbox_of_name(name)](const Name& entry) { return entry.name == mailbox; });
  if (held == names_.end()) return;
  // Whoever claims the name next is to get what was handed over and not read.
  now_ = std::max(now_, monotonic_now());
  while (auto letter = held->mailbox.take(reader_.letter_buffer())) {
    while (const auto request = Letter::take(*letter)) {
      if (!held_.hold(now_, held->name, *request)) ++counters_.hand_over_drops;
    }
  }
  names_.erase(held);
}

bool UdpFabric::owns(Slot slot) const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [slot](const ClaimedSlot& held) { return held.slot == slot; });
}

bool UdpFabric::owns(const std::string& mailbox) const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [&](const ClaimedSlot& held) { return mailbox_of(held.slot) == mailbox; }) ||
         std::any_of(names_.begin(), names_.end(),
                     [&](const Name& held) { return held.name == mailbox; });
}

bool UdpFabric::is_ours(const wire::IpAddress& destination) const {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [&](const auto& socket) { return socket->address == destination; });
}

// --- sending and waiting

bool UdpFabric::flush(Time now) {
  now_ = now;
  return sender_.flush(now);
}

void UdpFabric::wait_for(std::vector<pollfd>& descriptors) const {
  descriptors.push_back({.fd = epoll_.number(), .events = POLLIN, .revents = 0});
  if (const int full = sender_.full_socket(); full >= 0) {
    descriptors.push_back({.fd = full, .events = POLLOUT, .revents = 0});
  }
}

// --- receiving

ReceiveResult UdpFabric::receive(Time now, Receiver& receiver, std::size_t budget) {
  now_ = now;
  ReceiveResult result;
  if (busy_id_ != 0 && short_looks_ < kShortLooks) {
    ++short_looks_;
    result.packets = read(now, receiver, busy_id_, budget);
  } else {
    short_looks_ = 0;
    result.packets = read_ready(now, receiver, budget);
  }
  post_all();
  steering_.apply(now, slots_.front().slot);
  result.more = result.packets >= budget;
  return result;
}

std::size_t UdpFabric::read_ready(Time now, Receiver& receiver, std::size_t budget) {
  std::array<epoll_event, 8> events;
  const int ready = epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), 0);
  std::size_t packets = 0;
  for (int i = 0; i < ready && packets < budget; ++i) {
    packets += read(now, receiver, events[static_cast<std::size_t>(i)].data.u32, budget - packets);
  }
  if (ready > 0) busy_id_ = ready == 1 && events[0].data.u32 < kManagerId ? events[0].data.u32 : 0;
  return packets;
}

std::size_t UdpFabric::read(Time now, Receiver& receiver, std::uint32_t id, std::size_t budget) {
  for (const auto& socket : sockets_) {
    if (socket->id == id) return read_socket(now, receiver, *socket, budget);
  }
  if (id == kTimerId) look_at_held(now, receiver);
  if (id == kManagerId) {
    while (const auto destination = sender_.take_unreachable()) {
      receiver.on_unreachable(now, *destination);
    }
  }
  Mailbox* const mailbox = find_mailbox(id);
  return mailbox == nullptr ? 0 : read_mailbox(now, receiver, *mailbox, budget);
}

Mailbox* UdpFabric::find_mailbox(std::uint32_t id) {
  for (ClaimedSlot& held : slots_) {
    if (held.id == id) return &held.mailbox;
  }
  for (Name& held : names_) {
    if (held.id == id) return &held.mailbox;
  }
  return nullptr;
}

std::size_t UdpFabric::read_socket(Time now, Receiver& receiver, ReceiveSocket& socket,
                                   std::size_t budget) {
  std::size_t packets = 0;
  do {
    const std::size_t count = reader_.read(socket);
    for (std::size_t i = 0; i < count; ++i) {
      const Datagram& datagram = reader_.datagram(i);
      if (datagram.bytes.empty() ||
          datagram.path.source.is_v4() != datagram.path.destination.is_v4()) {
        ++counters_.malformed;
        ++packets;
        continue;
      }
      packets += packets_in(datagram);
      sort(now, receiver, datagram, socket.is_group);
    }
  } while (reader_.was_full() && packets < budget);
  return packets;
}

std::size_t UdpFabric::read_mailbox(Time now, Receiver& receiver, Mailbox& mailbox,
                                    std::size_t budget) {
  std::size_t packets = 0;
  while (packets < budget) {
    auto letter = mailbox.take(reader_.letter_buffer());
    if (!letter) break;
    while (const auto datagram = Letter::take(*letter)) {
      packets += packets_in(*datagram);
      take_over(now, receiver, *datagram);
    }
  }
  return packets;
}

UdpFabric::Destination UdpFabric::destination_of(wire::Bytes packet) const {
  if (packet.size() < kMinPacket) return {Destination::Kind::malformed};
  if (SteeringNote::parse(packet)) return {Destination::Kind::probe};
  const wire::Qpn qpn = destination_qpn(packet);
  if (is_management(qpn)) return {Destination::Kind::management};
  const Slot slot = slot_of(qpn);
  return {owns(slot) ? Destination::Kind::ours : Destination::Kind::others, slot};
}

void UdpFabric::sort(Time now, Receiver& receiver, const Datagram& datagram, bool is_group) {
  using Kind = Destination::Kind;
  icrc_checker_.begin_datagram();
  std::size_t at = 0;
  while (at < datagram.bytes.size()) {
    const wire::Bytes packet = segment_at(datagram, at);
    const Destination destination = destination_of(packet);
    const Datagram single{.path = datagram.path, .segment_size = packet.size(), .bytes = packet};
    if (destination.kind == Kind::malformed) {
      ++counters_.malformed;
    } else if (destination.kind == Kind::ours || is_group) {
      deliver(now, receiver, datagram.path, packet);
    } else if (destination.kind == Kind::probe) {
      answer_probe(datagram.path, packet);
    } else if (destination.kind == Kind::others) {
      at = hand_over_from(datagram, at, destination);
      continue;
    } else if (!route_management(single)) {
      deliver(now, receiver, datagram.path, packet);
    }
    at += packet.size();
  }
}

std::size_t UdpFabric::hand_over_from(const Datagram& datagram, std::size_t at,
                                      const Destination& destination) {
  std::size_t end = at;
  do {
    end += segment_at(datagram, end).size();
  } while (end < datagram.bytes.size() && destination_of(segment_at(datagram, end)) == destination);
  const Datagram part{.path = datagram.path,
                      .segment_size = segment_at(datagram, at).size(),
                      .bytes = datagram.bytes.subspan(at, end - at)};
  hand_over(mailbox_of(destination.slot), part, packets_in(part));
  return end;
}

// Only processes of this machine ask.
void UdpFabric::answer_probe(const wire::Path& path, wire::Bytes packet) {
  const auto probe = SteeringNote::parse(packet);
  if (!probe || probe->kind != SteeringNote::Kind::probe || path.source != path.destination) {
    ++counters_.malformed;
    return;
  }
  for (const ClaimedSlot& held : slots_) {
    SteeringNote answer = *probe;
    answer.kind = SteeringNote::Kind::answer;
    answer.slot = held.slot;
    if (owns(probe->slot)) {
      steering_.note_answer(path.destination, answer, slots_.front().slot);
      continue;
    }
    const auto bytes = answer.serialize();
    hand_over(mailbox_of(probe->slot), {.path = path, .segment_size = bytes.size(), .bytes = bytes},
              0);
  }
}

// What another process handed over is ours, or it is nobody's.
void UdpFabric::take_over(Time now, Receiver& receiver, const Datagram& datagram) {
  if (!is_ours(datagram.path.destination)) {
    counters_.ownerless += packets_in(datagram);
    return;
  }
  icrc_checker_.begin_datagram();
  for (std::size_t at = 0; at < datagram.bytes.size(); at += datagram.segment_size) {
    const wire::Bytes packet = segment_at(datagram, at);
    switch (destination_of(packet).kind) {
      case Destination::Kind::malformed:
        ++counters_.malformed;
        break;
      case Destination::Kind::others:
        ++counters_.ownerless;
        break;
      case Destination::Kind::probe:
        steering_.note_answer(datagram.path.destination, *SteeringNote::parse(packet),
                              slots_.front().slot);
        break;
      case Destination::Kind::ours:
      case Destination::Kind::management:
        ++counters_.taken_over;
        deliver(now, receiver, datagram.path, packet);
        break;
    }
  }
}

void UdpFabric::deliver(Time now, Receiver& receiver, const wire::Path& path, wire::Bytes packet) {
  ++counters_.received_packets;
  receiver.on_packet(
      now, {.path = path, .bytes = packet, .icrc_is_right = icrc_checker_.is_right(path, packet)});
}

// --- handing over

void UdpFabric::hand_over(const std::string& name, const Datagram& datagram,
                          std::uint64_t packets) {
  if (outbox_.add(name, datagram, packets)) return;
  post_all();
  outbox_.add(name, datagram, packets);
}

void UdpFabric::post_all() {
  outbox_.post_all(slots_.front().mailbox,
                   [this](const Outbox::Entry& entry, int error) { note_posted(entry, error); });
}

void UdpFabric::note_posted(const Outbox::Entry& entry, int error) {
  if (entry.packets == 0) return;
  if (error == ECONNREFUSED) {
    counters_.ownerless += entry.packets;
    return;
  }
  (error == 0 ? counters_.handed_over : counters_.hand_over_drops) += entry.packets;
  steering_.note_stray(now_, slots_.front().slot, entry.destination);
}

bool UdpFabric::route_management(const Datagram& packet) {
  if (mad_router_ == nullptr) return hand_to_lowest(packet);
  const wire::Inbound inbound{.path = packet.path,
                              .bytes = packet.bytes,
                              .icrc_is_right = icrc_checker_.is_right(packet.path, packet.bytes)};
  if (!inbound.icrc_is_right) return false;  // the device counts it
  const auto owner = mad_router_->owner_of(inbound);
  if (!owner || owns(*owner)) return false;
  Letter letter;
  letter.add(packet);
  const int error = slots_.front().mailbox.post(*owner, letter.bytes());
  if (error == ECONNREFUSED) {
    // For a process that is gone whoever has the packet answers, as the machine's one kernel would.
    // A name may be claimed in a moment.
    return !is_slot_mailbox(*owner) && held_.hold(now_, *owner, packet);
  }
  // A mailbox holds few letters, and the answers to many connections come at once.
  if (error == EAGAIN && held_.hold(now_, *owner, packet)) return true;
  ++(error == 0 ? counters_.handed_over : counters_.hand_over_drops);
  return true;
}

// Those that waited long enough are answered here: nobody listens.
void UdpFabric::look_at_held(Time now, Receiver& receiver) {
  held_.look([&](const HeldRequests::Request& request) {
    const Datagram packet = request.datagram();
    int error = ECONNREFUSED;
    if (!owns(request.name)) {
      Letter letter;
      letter.add(packet);
      error = slots_.front().mailbox.post(request.name, letter.bytes());
      const bool may_come = error == ECONNREFUSED && !is_slot_mailbox(request.name);
      if ((may_come || error == EAGAIN) && now < request.until) return false;
    }
    if (error == ECONNREFUSED) {
      icrc_checker_.begin_datagram();
      deliver(now, receiver, packet.path, packet.bytes);
    } else {
      ++(error == 0 ? counters_.handed_over : counters_.hand_over_drops);
    }
    return true;
  });
}

bool UdpFabric::hand_to_lowest(const Datagram& packet) {
  std::uint32_t lowest = kSlotCount;
  for (const ClaimedSlot& held : slots_) lowest = std::min(lowest, held.slot.value());
  Letter letter;
  letter.add(packet);
  for (std::uint32_t number = 0; number < lowest; ++number) {
    if (slots_.front().mailbox.post(mailbox_of(Slot{number}), letter.bytes()) != 0) continue;
    ++counters_.handed_over;
    return true;
  }
  return false;
}

// --- groups

int UdpFabric::join(const wire::IpAddress& group) {
  if (!group.is_multicast()) return EINVAL;
  if (is_ours(group)) return 0;
  for (const LocalAddress& local : options_.addresses) {
    if (local.address.is_v4() != group.is_v4()) continue;
    auto socket = open_group({.address = group, .interface = local.interface}, options_);
    if (!socket) return socket.error();
    auto added = std::make_unique<ReceiveSocket>(ReceiveSocket{
        .address = group, .socket = std::move(*socket), .is_group = true, .id = ++last_id_});
    if (const int failed = watch(added->socket, added->id); failed != 0) return failed;
    sockets_.push_back(std::move(added));
    return 0;
  }
  return EAFNOSUPPORT;
}

int UdpFabric::leave(const wire::IpAddress& group) {
  const auto left = std::erase_if(
      sockets_, [&](const auto& socket) { return socket->is_group && socket->address == group; });
  return left > 0 ? 0 : EADDRNOTAVAIL;
}

// --- counters

UdpCounters UdpFabric::counters() const {
  UdpCounters counters = counters_;
  counters.sent_packets = sender_.counters().packets;
  counters.send_errors = sender_.counters().errors;
  counters.receive_drops = reader_.overflows();
  for (const ClaimedSlot& held : slots_) counters.refused_letters += held.mailbox.refused();
  for (const Name& held : names_) counters.refused_letters += held.mailbox.refused();
  return counters;
}

std::optional<std::uint64_t> UdpFabric::counter(std::string_view name) const {
  for (const NamedCounter& entry : kCounters) {
    if (entry.name == name) return counters().*entry.counter;
  }
  return std::nullopt;
}

}  // namespace urxe::net
