// Which of the processes that share an address gets a packet.
//
// The kernel asks a classic BPF program, one for all sockets of an address (a SO_REUSEPORT group),
// for the index of the socket that a packet goes to. The program looks the slot of the packet's
// destination QPN up in a table. Nobody tells a process the index of its socket, and when one is
// closed the last one moves to its place. So processes find the table out with probes: packets that
// name an index, to which the program sends them, and that whoever receives them answers through
// the asking process's mailbox. A table may be wrong at any time; then a packet reaches another
// process, which hands it over to the owner, and asks anew. One process asks at a time, for all of
// them have one program: whoever holds the mailbox of the turn.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/descriptor.h"
#include "net/udp/mailbox.h"
#include "net/udp/options.h"
#include "net/udp/slot.h"
#include "net/wire/bytes.h"
#include "net/wire/time.h"

namespace urxe::net {

// Gives a socket that only sends a program that refuses all packets. Returns 0 or an errno.
int refuse_all(int socket);

// The mailbox that a process holds while it asks. There is another every two seconds, so that one
// that was stopped with it holds up the others no longer.
[[nodiscard]] std::string turn_mailbox(const wire::IpAddress& address, Time now);

// "Who receives what goes to `index`?", and the answer "`slot` does".
struct SteeringNote {
  enum class Kind : std::uint8_t { probe, answer } kind = Kind::probe;
  std::uint32_t index = 0;
  Slot slot;                // of the process that asks, or of the one that answers
  std::uint64_t nonce = 0;  // of the process that asks

  static constexpr std::size_t kSize = 24;
  [[nodiscard]] std::array<std::uint8_t, kSize> serialize() const;
  // Nothing for other packets. No RoCEv2 packet looks like one: the opcode is a reserved one.
  [[nodiscard]] static std::optional<SteeringNote> parse(wire::Bytes packet);
};

// Owner: a UdpFabric.
class Steering {
 public:
  Steering(std::uint64_t nonce, KeepDescriptor keep) : nonce_(nonce), keep_(keep) {}

  // `socket` receives for the address, and outlives this.
  void add(const LocalAddress& local, const Descriptor& socket);

  // Asks about all addresses; where others do, later. `own` is where answers go.
  void probe_all(Time now, Slot own);
  // A packet came here that was another's, who exists: the table of this address is wrong. Asks
  // anew, unless this process or another did a short time ago.
  void note_stray(Time now, Slot own, const wire::IpAddress& address);
  // One of `slot`'s process receives what goes to an index. Answers to others are ignored.
  void note_answer(const wire::IpAddress& address, const SteeringNote& answer, Slot own);
  // Gives the kernel the tables that were asked for, once they are complete or their time is over.
  void apply(Time now, Slot own);
  // When apply wants to be called at the latest.
  [[nodiscard]] Time next_deadline() const;

 private:
  struct Group {
    LocalAddress local;
    const Descriptor* socket = nullptr;
    std::map<std::uint32_t, std::uint32_t> table;    // slot to index
    std::map<std::uint32_t, std::uint32_t> answers;  // to the present round of probes
    std::uint32_t asked = 0;                         // indexes, in this round
    bool unapplied = false;
    std::optional<Mailbox> turn;  // held: no other process asks
    Time turn_end{};
    Time round_end{};
    Time next_probe{};
    Time retry_at = kNever;  // to ask for the first time: others had the turn
    Duration pause{};
  };

  [[nodiscard]] static bool is_complete(const Group& group, Slot own);
  [[nodiscard]] Group* find(const wire::IpAddress& address);
  void start_round(Time now, Group& group, Slot own) const;
  [[nodiscard]] bool take_turn(Time now, Group& group) const;
  void ask(Group& group, Slot own, std::uint32_t up_to) const;

  std::uint64_t nonce_;
  KeepDescriptor keep_;
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace urxe::net
