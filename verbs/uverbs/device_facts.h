// What a program learns about a device and its port.
#pragma once

#include <cstdint>

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "emulator/device.h"
#include "verbs/config/device_config.h"

namespace urxe::verbs::uverbs {

// The completion vectors are all one: as many as there are processors, at least two.
[[nodiscard]] std::uint32_t completion_vectors();

[[nodiscard]] ib_uverbs_query_device_resp device_facts(const DeviceConfig& config,
                                                       const emulator::Device& device);
// Without response_length.
[[nodiscard]] ib_uverbs_ex_query_device_resp extended_device_facts(const DeviceConfig& config,
                                                                   const emulator::Device& device);
[[nodiscard]] ib_uverbs_query_port_resp port_facts(const DeviceConfig& config,
                                                   const emulator::Device& device);
[[nodiscard]] ib_uverbs_gid_entry gid_entry(const DeviceConfig& config,
                                            const emulator::Device& device, std::uint32_t index);

}  // namespace urxe::verbs::uverbs
