// What the files under /sys show at the moment.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "net/wire/address.h"
#include "verbs/config/device_config.h"
#include "verbs/config/port_status.h"

namespace urxe::verbs {

// The directories of counters under ports/1, with the names that the kernel gives them.
enum class CounterSet : std::uint8_t {
  port,              // counters
  hardware,          // hw_counters
  cm_sent,           // cm_tx_msgs
  cm_sent_again,     // cm_tx_retries
  cm_received,       // cm_rx_msgs
  cm_received_again  // cm_rx_duplicates
};

// Asked whenever a program opens one of the files. `device` is an index into the list of devices.
//
// Called from any thread, one call at a time; it may take locks but must not open files under /sys.
class SysfsProvider {
 public:
  virtual ~SysfsProvider() = default;

  virtual PortStatus port_status(std::size_t device) = 0;
  // The GID table. Unspecified addresses are unused entries; so is what is beyond the end.
  virtual std::vector<wire::IpAddress> gids(std::size_t device) = 0;
  // `name` as in counters.h.
  virtual std::uint64_t counter(std::size_t device, CounterSet set, std::string_view name) = 0;
};

// What can be said without an engine: the interfaces' states, and GIDs as configured.
class ConfigProvider : public SysfsProvider {
 public:
  explicit ConfigProvider(const std::vector<DeviceConfig>& devices) : devices_(devices) {}

  PortStatus port_status(std::size_t device) override {
    return verbs::port_status(devices_[device]);
  }
  std::vector<wire::IpAddress> gids(std::size_t device) override {
    return devices_[device].addresses;
  }
  std::uint64_t counter(std::size_t, CounterSet, std::string_view) override { return 0; }

 private:
  const std::vector<DeviceConfig>& devices_;
};

}  // namespace urxe::verbs
