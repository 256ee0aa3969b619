// Processes that use rdma_cm, a device each, joined by a network in virtual time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

#include "emulator/device.h"
#include "verbs/abi/rdma_cm_abi.h"
#include "verbs/rdma_cm/rdma_cm_node.h"
#include "verbs/runtime/guarded_memory.h"

namespace urxe::test {

class CmNetwork;

// A process's device.
class CmHost final : public verbs::HostedDevice {
 public:
  CmHost(CmNetwork& network, const std::vector<wire::IpAddress>& addresses, std::uint32_t slot);

  [[nodiscard]] emulator::Device& engine() { return device_; }
  void set_listener(verbs::DeviceListener*) override {}
  void drive() override {}
  int join(const wire::IpAddress&) override { return 0; }
  int leave(const wire::IpAddress&) override { return 0; }

  std::vector<std::string> names;  // that are claimed
  int refuse_names = 0;            // the errno with which claims fail

 private:
  friend class CmNetwork;
  emulator::Device& device() override { return device_; }
  void lock(Haste) override {}
  void unlock() override {}
  void settle(Haste haste) override;

  CmNetwork& network_;
  verbs::GuardedMemory memory_;
  emulator::Device device_;
};

// A process: its device, its agent, and what a program does with event channels.
class CmProcess {
 public:
  CmProcess(CmNetwork& network, const std::string& address, std::uint32_t slot);

  [[nodiscard]] CmHost& host() { return *host_; }
  [[nodiscard]] verbs::rdma_cm::CmAgent& agent() { return *agent_; }
  [[nodiscard]] tl::expected<verbs::OpenedFile, int> open(int flags) { return node_.open(flags); }

 private:
  std::vector<verbs::DeviceConfig> devices_;
  std::shared_ptr<CmHost> host_;
  std::shared_ptr<verbs::rdma_cm::CmAgent> agent_;
  verbs::rdma_cm::RdmaCmNode node_;
};

class CmNetwork {
 public:
  CmNetwork();

  [[nodiscard]] CmProcess& server() { return *processes_[0]; }  // 10.0.0.1
  [[nodiscard]] CmProcess& client() { return *processes_[1]; }  // 10.0.0.2
  [[nodiscard]] Time now() const { return now_; }
  // Delivers what is on its way, then lets time pass.
  void run(Duration time = {});
  bool loses_all = false;

 private:
  friend class CmHost;
  struct Packet {
    wire::Path path;
    std::vector<std::uint8_t> bytes;
  };
  void deliver();

  Time now_{Duration{1}};
  std::vector<std::unique_ptr<CmProcess>> processes_;
  std::map<wire::IpAddress, CmHost*> hosts_;
  std::deque<Packet> in_flight_;
};

// An event channel as librdmacm uses it.
class Channel {
 public:
  explicit Channel(CmProcess& process, int flags = 0) : opened_(*process.open(flags)) {}
  ~Channel() { close(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  void close();

  [[nodiscard]] int fd() const { return opened_.fd; }
  // Whether poll says that there is something to read.
  [[nodiscard]] bool is_readable() const;

  // Writes one command; 0 or a negative errno.
  template <typename Command>
  int write(std::uint32_t number, const Command& command, std::uint16_t out = 0) {
    std::vector<std::uint8_t> bytes(sizeof(rdma_ucm_cmd_hdr) + sizeof(command));
    const rdma_ucm_cmd_hdr header{.cmd = number, .in = sizeof(command), .out = out};
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), &command, sizeof(command));
    return write_bytes(bytes);
  }
  int write_bytes(const std::vector<std::uint8_t>& bytes);

  std::uint32_t create(std::uint64_t uid, rdma_ucm_port_space space = RDMA_PS_TCP);
  // Events reported, or a negative errno.
  int destroy(std::uint32_t id);
  int bind(std::uint32_t id, const std::string& ip, std::uint16_t port);
  int listen(std::uint32_t id, std::uint32_t backlog = 8);
  int resolve_address(std::uint32_t id, const std::string& ip, std::uint16_t port);
  int resolve_route(std::uint32_t id);
  int connect(std::uint32_t id, std::uint32_t qpn, const std::string& data = "");
  int accept(std::uint32_t id, std::uint64_t uid, std::uint32_t qpn, const std::string& data = "");
  int confirm(std::uint32_t id);
  int reject(std::uint32_t id, const std::string& data);
  int disconnect(std::uint32_t id);
  int migrate_from(const Channel& other, std::uint32_t id);
  int init_qp(std::uint32_t id, std::uint32_t state, ib_uverbs_qp_attr& attributes);
  int set_option(std::uint32_t id, std::uint32_t name, const std::vector<std::uint8_t>& value);
  std::optional<rdma_ucm_query_route_resp> query_route(std::uint32_t id);
  // Bound, resolved, and its events taken.
  std::uint32_t resolved(std::uint64_t uid, std::uint16_t port,
                         rdma_ucm_port_space space = RDMA_PS_TCP);
  // The next event; its absence is an error, a negative errno.
  tl::expected<rdma_ucm_event_resp, int> event();
  // The same, of this type. Fails the test if it is another, or none.
  rdma_ucm_event_resp expect(verbs::abi::CmEventType type);

 private:
  verbs::OpenedFile opened_;
};

}  // namespace urxe::test
