// Another process with a fabric of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "net/descriptor.h"
#include "net/udp/udp_fabric.h"

namespace urxe::test {

// What a child tells when it is asked.
struct ChildReport {
  net::Slot slot;
  std::uint64_t packets = 0;
  std::uint64_t right_packets = 0;
  net::UdpCounters counters;
};

// A forked process that opens a fabric and receives until it is killed: at the latest by this
// object's end, or its parent's.
class Child {
 public:
  // `prepare` runs in the child before it opens its fabric, and after with that.
  using Prepare = std::function<void()>;
  using Tune = std::function<void(net::UdpFabric&)>;
  explicit Child(const net::UdpOptions& options, const Prepare& prepare = {},
                 const Tune& tune = {});
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Empty if it opened its fabric; else what it was told.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] net::Slot slot() const { return slot_; }
  [[nodiscard]] wire::Qpn qpn() const { return net::first_qpn_of(slot_); }

  // It answers when it has received what was there.
  [[nodiscard]] ChildReport report();
  // Asks until it has got `packets`, or for kPatience.
  [[nodiscard]] ChildReport report_after(std::uint64_t packets);

  void stop();      // SIGSTOP; returns when it stands
  void go_on();     // SIGCONT
  void kill_now();  // SIGKILL; returns when it is gone

 private:
  pid_t process_ = -1;
  net::Descriptor control_;
  std::string error_;
  net::Slot slot_;
};

}  // namespace urxe::test
