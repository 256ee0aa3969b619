#include "net/udp/steering.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>

#include <linux/filter.h>
#include <sys/socket.h>

#include "net/udp/socket_address.h"
#include "net/wire/path.h"

namespace urxe::net {
namespace {

using namespace std::chrono_literals;

// In place of a BTH's first word: an opcode that the specification leaves to manufacturers, and
// letters where the P_Key would be.
constexpr std::uint32_t kProbe = 0xFF757278;
constexpr std::uint32_t kAnswer = 0xFF757279;
constexpr std::uint32_t kFirstWord = 0;
constexpr std::uint32_t kSecondWord = 4;  // of a BTH: a byte of others, then the QPN

// Indexes that the first probes of a round ask for. As long as the later half of them is answered,
// twice as many follow.
constexpr std::uint32_t kFirstProbes = 8;
// At least this lies between two rounds; the pause doubles while they bring nothing new.
constexpr Duration kFirstPause = 20ms;
// Who has not answered after this is busy or stopped: its packets will be handed over.
constexpr Duration kRound = 10ms;
constexpr Duration kLastPause = 5s;
// Whoever asked keeps the turn so long for every index that it asked for: to ask a crowd, in which
// somebody comes or goes all the time, is to wake all of it.
constexpr Duration kTurnPerIndex = 1ms;
constexpr Duration kTurnMailbox = 2s;  // there is another after so long
constexpr Duration kRetry = 500ms;

// No group has so many members: the kernel picks one of all, by a hash of addresses and ports.
constexpr std::uint32_t kAny = 0xFFFFFFFF;

int attach(int socket, int option, std::vector<sock_filter>& code) {
  sock_fprog program;
  std::memset(&program, 0, sizeof(program));  // the padding, too: valgrind sees the kernel read it
  program.len = static_cast<unsigned short>(code.size());
  program.filter = code.data();
  return setsockopt(socket, SOL_SOCKET, option, &program, sizeof(program)) == 0 ? 0 : errno;
}

// Offsets count from the UDP payload. A load beyond the packet's end picks member 0.
std::vector<sock_filter> program_for(const std::map<std::uint32_t, std::uint32_t>& table) {
  std::vector<sock_filter> code{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFirstWord),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kProbe, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSecondWord),
      BPF_STMT(BPF_RET | BPF_A, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSecondWord),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, kIndexBits),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, Slot::kMask),
  };
  for (const auto& [slot, index] : table) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, index));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, kAny));
  return code;
}

}  // namespace

int refuse_all(int socket) {
  std::vector<sock_filter> code{BPF_STMT(BPF_RET | BPF_K, 0)};
  return attach(socket, SO_ATTACH_FILTER, code);
}

std::string turn_mailbox(const wire::IpAddress& address, Time now) {
  return "urxe/order/" + address.to_string() + "/" +
         std::to_string(now.time_since_epoch() / kTurnMailbox);
}

std::array<std::uint8_t, SteeringNote::kSize> SteeringNote::serialize() const {
  std::array<std::uint8_t, kSize> bytes{};
  wire::store_be(bytes, 0, kind == Kind::probe ? kProbe : kAnswer);
  wire::store_be(bytes, 4, index);
  wire::store_be(bytes, 8, slot.value());
  wire::store_be(bytes, 12, nonce);
  return bytes;
}

std::optional<SteeringNote> SteeringNote::parse(wire::Bytes packet) {
  if (packet.size() != kSize) return std::nullopt;
  const auto word = wire::load_be<std::uint32_t>(packet, 0);
  if (word != kProbe && word != kAnswer) return std::nullopt;
  return SteeringNote{.kind = word == kProbe ? Kind::probe : Kind::answer,
                      .index = wire::load_be<std::uint32_t>(packet, 4),
                      .slot = Slot{wire::load_be<std::uint32_t>(packet, 8)},
                      .nonce = wire::load_be<std::uint64_t>(packet, 12)};
}

void Steering::add(const LocalAddress& local, const Descriptor& socket) {
  groups_.push_back(std::make_unique<Group>());
  groups_.back()->local = local;
  groups_.back()->socket = &socket;
}

Steering::Group* Steering::find(const wire::IpAddress& address) {
  for (const auto& group : groups_) {
    if (group->local.address == address) return group.get();
  }
  return nullptr;
}

// --- asking

void Steering::probe_all(Time now, Slot own) {
  for (const auto& group : groups_) {
    group->retry_at = now + kRetry;
    start_round(now, *group, own);
  }
}

void Steering::note_stray(Time now, Slot own, const wire::IpAddress& address) {
  Group* const group = find(address);
  if (group != nullptr && now >= group->next_probe) start_round(now, *group, own);
}

bool Steering::take_turn(Time now, Group& group) const {
  if (group.turn) return true;
  auto claimed = Mailbox::open(turn_mailbox(group.local.address, now), keep_);
  if (claimed) group.turn = std::move(*claimed);
  return claimed.has_value();
}

void Steering::start_round(Time now, Group& group, Slot own) const {
  if (!take_turn(now, group)) {
    group.next_probe = now + kFirstPause;
    return;
  }
  group.retry_at = kNever;
  group.pause = std::clamp(2 * group.pause, kFirstPause, kLastPause);
  group.next_probe = now + group.pause;
  group.round_end = now + kRound;
  group.answers.clear();
  group.asked = 0;
  // Even if nothing new comes: another process may have given the kernel a worse table.
  group.unapplied = true;
  ask(group, own, kFirstProbes);
}

void Steering::ask(Group& group, Slot own, std::uint32_t up_to) const {
  SocketAddress address;
  const socklen_t size =
      to_socket_address(group.local.address, wire::kRoceUdpPort, group.local.interface, address);
  for (; group.asked < std::min(up_to, kSlotCount); ++group.asked) {
    const auto probe = SteeringNote{.index = group.asked, .slot = own, .nonce = nonce_}.serialize();
    // One that gets lost makes a table that is wrong, as others are.
    sendto(group.socket->number(), probe.data(), probe.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
           &address.any, size);
  }
}

// --- what comes back

void Steering::note_answer(const wire::IpAddress& address, const SteeringNote& answer, Slot own) {
  Group* const group = find(address);
  if (answer.kind != SteeringNote::Kind::answer) return;
  if (group == nullptr || answer.nonce != nonce_ || answer.index >= group->asked) return;
  // Probes for indexes that do not exist go to any socket, whose own index is lower.
  const auto [entry, is_new] = group->answers.try_emplace(answer.slot.value(), answer.index);
  if (!is_new && entry->second <= answer.index) return;
  entry->second = answer.index;
  const auto [known, is_unknown] = group->table.try_emplace(entry->first, kAny);
  if (known->second != answer.index) {
    known->second = answer.index;
    group->unapplied = true;
    group->pause = Duration{};
  }
  if (2 * answer.index >= group->asked) ask(*group, own, 2 * group->asked);
}

// This process's socket and all that joined before it.
bool Steering::is_complete(const Group& group, Slot own) {
  if (!group.answers.contains(own.value())) return false;
  std::set<std::uint32_t> indexes;
  for (const auto& [slot, index] : group.answers) indexes.insert(index);
  return *indexes.rbegin() + 1 == indexes.size();
}

void Steering::apply(Time now, Slot own) {
  for (const auto& group : groups_) {
    if (now >= group->retry_at) {
      group->retry_at = now + kRetry;
      start_round(now, *group, own);
    }
    if (!group->unapplied && now >= group->turn_end) group->turn.reset();
    if (!group->unapplied || (now < group->round_end && !is_complete(*group, own))) continue;
    group->unapplied = false;
    group->turn_end = now + kTurnPerIndex * group->asked;
    std::vector<sock_filter> code = program_for(group->table);
    attach(group->socket->number(), SO_ATTACH_REUSEPORT_CBPF, code);
  }
}

Time Steering::next_deadline() const {
  Time earliest = kNever;
  for (const auto& group : groups_) {
    earliest = std::min(earliest, group->retry_at);
    if (group->unapplied) earliest = std::min(earliest, group->round_end);
    if (group->turn && !group->unapplied) earliest = std::min(earliest, group->turn_end);
  }
  return earliest;
}

}  // namespace urxe::net
