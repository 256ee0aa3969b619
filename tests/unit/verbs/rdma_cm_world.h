// An event channel on a process of a CmNetwork.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/cm_network.h"
#include "verbs/abi/rdma_cm_abi.h"

namespace urxe::test {

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
