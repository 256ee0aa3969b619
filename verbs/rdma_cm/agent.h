// rdma_cm: connections by IP addresses and ports, for all event channels of this process. The
// command side of the kernel's ucma.c and the address side of its cma.c; the protocol is the
// devices' connection managers'.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "emulator/cm/manager.h"
#include "verbs/abi/rdma_cm_abi.h"
#include "verbs/config/device_config.h"
#include "verbs/preload/own_mutex.h"
#include "verbs/rdma_cm/cm_device.h"
#include "verbs/rdma_cm/event_channel.h"
#include "verbs/rdma_cm/identifier.h"
#include "verbs/rdma_cm/ports.h"
#include "verbs/rdma_cm/request.h"
#include "verbs/rdma_cm/route.h"
#include "verbs/runtime/device_lease.h"

namespace urxe::verbs::rdma_cm {

// Starts the device of this index, unless it runs already. The error is an errno.
using OpenDevice = std::function<tl::expected<std::shared_ptr<DeviceLease>, int>(std::size_t)>;

struct AgentOptions {
  OpenDevice open_device;
  FindSource find_source = rdma_cm::find_source;
  std::function<std::uint32_t()> random;  // starting PSNs, ports
  std::function<Time()> now;
};

// One per process. Any thread may call; commands of different threads run one after the other, but
// for those that wait.
//
// Locks, in the order in which they are taken: the list of open devices, a device, the agent's. A
// command looks its identifier up, takes the device's lock if it needs that, and looks again.
class CmAgent {
 public:
  // `devices` outlives this.
  CmAgent(const std::vector<DeviceConfig>& devices, AgentOptions options);

  [[nodiscard]] tl::expected<EventChannel::Opened, int> open_channel(bool non_blocking);
  // The program closed it: its identifiers go, peers are told.
  void close_channel(EventChannel& channel);

  // A command on a channel: 0 or a negative errno.
  [[nodiscard]] int execute(EventChannel& channel, std::uint32_t command, const Request& request);

  // The process ends: all peers are told.
  void end();

  // Around a fork, after the devices' locks were taken.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  // In the child this is dead: it closes its descriptors and is never used again.
  void after_fork_in_child();

  // Identifiers that exist, for leak checks.
  [[nodiscard]] std::size_t identifiers();

 private:
  friend class CmDevice;
  using IdPointer = std::shared_ptr<Identifier>;
  using Command = int (CmAgent::*)(EventChannel&, const Request&);

  // What is left to do on devices for identifiers that were destroyed.
  struct Leftovers {
    std::vector<std::pair<CmDevice*, wire::CommId>> communications;
    std::vector<Listening> listening;
  };

  // --- agent.cc
  // Fails for those whose device was removed, which only `find_any` finds.
  [[nodiscard]] tl::expected<IdPointer, int> find(const EventChannel& channel,
                                                  std::uint32_t handle) const;
  [[nodiscard]] tl::expected<IdPointer, int> find_any(const EventChannel& channel,
                                                      std::uint32_t handle) const;
  IdPointer add_identifier(EventChannel& channel, wire::PortSpace space, emulator::QpType type);
  void bury(Identifier& id, Leftovers& left);
  void clean_up(const Leftovers& left);
  void clean_up_removed();
  // Opens the device if that was not done yet. Not with a lock held.
  [[nodiscard]] tl::expected<CmDevice*, int> use_device(std::size_t index);
  [[nodiscard]] std::optional<std::size_t> device_with(const wire::IpAddress& address) const;
  [[nodiscard]] IdPointer find_by_communication(const CmDevice& device, wire::CommId id) const;
  void set_communication(const IdPointer& id, wire::CommId communication);
  // Runs `body(id, device)` under both locks.
  template <typename Body>
  int on_device(EventChannel& channel, std::uint32_t handle, Body body);
  int create_id(EventChannel& channel, const Request& request);
  int destroy_id(EventChannel& channel, const Request& request);
  int take_event(EventChannel& channel, const Request& request);
  int not_implemented(EventChannel& channel, const Request& request);

  // --- addresses.cc
  int bind_ip(EventChannel& channel, const Request& request);
  int bind(EventChannel& channel, const Request& request);
  int resolve_ip(EventChannel& channel, const Request& request);
  int resolve_address(EventChannel& channel, const Request& request);
  int resolve_route(EventChannel& channel, const Request& request);
  int listen(EventChannel& channel, const Request& request);
  int bind_to(EventChannel& channel, std::uint32_t handle, const SocketAddress& address);
  int bind_locked(Identifier& id, const SocketAddress& address, CmDevice* device);
  int resolve(EventChannel& channel, std::uint32_t handle, const SocketAddress& source,
              const SocketAddress& destination);
  struct Resolved {
    SocketAddress source;
    SocketAddress destination;
    CmDevice* device = nullptr;
    int failed = 0;  // a negative errno, of the event
  };
  // The error is one of the command.
  [[nodiscard]] tl::expected<Resolved, int> find_way(const SocketAddress& source,
                                                     const SocketAddress& destination,
                                                     CmDevice* bound);
  [[nodiscard]] tl::expected<Resolved, int> find_loopback(const SocketAddress& source,
                                                          const SocketAddress& destination,
                                                          CmDevice* bound);
  void set_route(Identifier& id);
  [[nodiscard]] static emulator::ListenSpec listen_spec(const Identifier& id,
                                                        std::uint32_t backlog);
  int listen_on(const IdPointer& id, CmDevice& device, std::uint32_t backlog);
  [[nodiscard]] static std::vector<std::string> names_to_claim(const Identifier& id,
                                                               const DeviceConfig& config);

  // --- query.cc
  int query_route(EventChannel& channel, const Request& request);
  int query(EventChannel& channel, const Request& request);

  // --- connections.cc
  int connect(EventChannel& channel, const Request& request);
  int accept(EventChannel& channel, const Request& request);
  int reject(EventChannel& channel, const Request& request);
  int disconnect(EventChannel& channel, const Request& request);
  int notify(EventChannel& channel, const Request& request);
  int init_qp_attributes(EventChannel& channel, const Request& request);
  int connect_locked(const IdPointer& id, emulator::Device& device,
                     const rdma_ucm_connect& command);
  int accept_locked(Identifier& id, emulator::Device& device, const rdma_ucm_accept& command);

  // --- options.cc
  int set_option(EventChannel& channel, const Request& request);
  int join_ip_multicast(EventChannel& channel, const Request& request);
  int join_multicast(EventChannel& channel, const Request& request);
  int leave_multicast(EventChannel& channel, const Request& request);
  int migrate(EventChannel& channel, const Request& request);
  int set_id_option(Identifier& id, std::uint32_t name, const std::vector<std::uint8_t>& value);
  int set_ib_path(const IdPointer& id, const std::vector<std::uint8_t>& value);
  int join(EventChannel& channel, const Request& request, const rdma_ucm_join_mcast& command,
           const SocketAddress& address);

  // --- events.cc
  void handle_event(CmDevice& device, emulator::Device& engine, const emulator::CmEvent& event);
  void handle_request(CmDevice& device, emulator::Device& engine, const emulator::CmEvent& event);
  void handle_connection(const IdPointer& id, const emulator::CmEvent& event);
  void handle_resolution(const IdPointer& id, const emulator::CmEvent& event);
  void handle_removal(CmDevice& device, emulator::Device& engine);
  void handle_link_address(const CmDevice& device);
  [[nodiscard]] IdPointer find_listener(const CmDevice& device,
                                        emulator::ListenerId listener) const;
  void publish(const IdPointer& id, abi::CmEventType type, std::int32_t status,
               const rdma_ucm_event_resp& parameters = {});

  const std::vector<DeviceConfig>& devices_;
  const AgentOptions options_;

  OwnMutex pool_mutex_;  // over pool_
  std::vector<std::unique_ptr<CmDevice>> pool_;

  OwnMutex mutex_;  // over all that follows
  std::vector<std::shared_ptr<EventChannel>> channels_;
  std::unordered_map<std::uint32_t, IdPointer> ids_;
  std::map<std::pair<const CmDevice*, wire::CommId>, IdPointer> by_communication_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Multicast>> groups_;
  PortTable ports_;
  Leftovers removed_;  // of devices, for the next command: it comes without a device's lock
  std::uint32_t next_handle_ = 0;
  std::uint32_t next_group_ = 0;
};

// A negative errno for what a device refused.
[[nodiscard]] int errno_of(const emulator::Error& error);
[[nodiscard]] ib_uverbs_ah_attr ah_attributes(const emulator::AddressVector& vector);

template <typename Body>
int CmAgent::on_device(EventChannel& channel, std::uint32_t handle, Body body) {
  CmDevice* device = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto id = find(channel, handle);
    if (!id) return id.error();
    device = (*id)->device;
  }
  if (device == nullptr) return -EINVAL;
  const auto access = device->host().access();
  const std::scoped_lock lock(mutex_);
  const auto id = find(channel, handle);
  if (!id) return id.error();
  if ((*id)->device != device) return -EINVAL;
  return body(*id, *access);
}

}  // namespace urxe::verbs::rdma_cm
