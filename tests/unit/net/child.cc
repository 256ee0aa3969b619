#include "tests/unit/net/child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/net/traffic.h"

namespace urxe::test {
namespace {

constexpr std::size_t kSentenceSize = 512;

// The child's first words.
struct Greeting {
  bool opened = false;
  net::Slot slot;
  std::array<char, kSentenceSize> sentence{};
};

template <typename Value>
void tell(int control, const Value& value) {
  if (write(control, &value, sizeof(value)) != sizeof(value)) _exit(1);
}

template <typename Value>
Value hear(int control) {
  Value value;
  std::size_t got = 0;
  const Time deadline = now() + kPatience;
  while (got < sizeof(value) && now() < deadline) {
    pollfd ready{.fd = control, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 1000) <= 0) continue;
    const ssize_t size = read(control, reinterpret_cast<char*>(&value) + got, sizeof(value) - got);
    if (size <= 0) throw std::runtime_error("the child is gone");
    got += static_cast<std::size_t>(size);
  }
  if (got < sizeof(value)) throw std::runtime_error("the child says nothing");
  return value;
}

ChildReport report_on(const net::UdpFabric& fabric, const Arrivals& arrivals) {
  ChildReport report{.slot = fabric.slots().front().slot, .counters = fabric.counters()};
  for (const Arrival& arrival : arrivals.all) {
    ++report.packets;
    if (arrival.icrc_is_right) ++report.right_packets;
  }
  return report;
}

[[noreturn]] void receive_for_ever(net::UdpFabric& fabric, int control) {
  Arrivals arrivals;
  while (true) {
    std::vector<pollfd> descriptors{{.fd = control, .events = POLLIN, .revents = 0}};
    fabric.wait_for(descriptors);
    poll(descriptors.data(), descriptors.size(), 5);
    receive_all(fabric, arrivals);
    if (descriptors[0].revents == 0) continue;
    char question = 0;
    if (read(control, &question, 1) != 1) _exit(0);  // the parent is gone
    tell(control, report_on(fabric, arrivals));
  }
}

[[noreturn]] void run_child(const net::UdpOptions& options, int control,
                            const Child::Prepare& prepare, const Child::Tune& tune) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (prepare) prepare();
  auto fabric = net::UdpFabric::open(options);
  Greeting greeting;
  if (!fabric) {
    std::strncpy(greeting.sentence.data(), fabric.error().sentence.c_str(), kSentenceSize - 1);
    tell(control, greeting);
    _exit(0);
  }
  greeting.opened = true;
  greeting.slot = (*fabric)->slots().front().slot;
  if (tune) tune(**fabric);
  tell(control, greeting);
  receive_for_ever(**fabric, control);
}

}  // namespace

Child::Child(const net::UdpOptions& options, const Prepare& prepare, const Tune& tune) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error("no socketpair");
  }
  control_ = net::Descriptor(ends[0]);
  net::Descriptor child_end(ends[1]);
  process_ = fork();
  if (process_ == 0) {
    control_ = net::Descriptor();
    run_child(options, child_end.number(), prepare, tune);
  }
  child_end = net::Descriptor();
  const auto greeting = hear<Greeting>(control_.number());
  slot_ = greeting.slot;
  if (!greeting.opened) error_ = greeting.sentence.data();
}

Child::~Child() {
  if (process_ > 0) kill_now();
}

ChildReport Child::report() {
  if (write(control_.number(), "r", 1) != 1) throw std::runtime_error("the child is gone");
  return hear<ChildReport>(control_.number());
}

ChildReport Child::report_after(std::uint64_t packets) {
  const Time deadline = now() + kPatience;
  ChildReport last = report();
  while (last.packets < packets && now() < deadline) last = report();
  return last;
}

void Child::stop() {
  kill(process_, SIGSTOP);
  waitpid(process_, nullptr, WUNTRACED);
}

void Child::go_on() { kill(process_, SIGCONT); }

void Child::kill_now() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

}  // namespace urxe::test
