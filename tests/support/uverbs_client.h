// A uverbs file, given commands in the ways in which libibverbs gives them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <unistd.h>

#include "verbs/abi/rxe_abi.h"
#include "verbs/preload/machine.h"

namespace urxe::test {

// How write() commands reach the file.
enum class Front { write, ioctl };

// One ioctl, attribute by attribute.
class Ioctl {
 public:
  // ib_uverbs_ioctl_hdr without the attributes behind it.
  struct Header {
    std::uint16_t length = 0;  // 0: what is right
    std::uint16_t object_id = 0;
    std::uint16_t method_id = 0;
    std::uint16_t num_attrs = 0;
    std::uint64_t reserved1 = 0;
    std::uint32_t driver_id = RDMA_DRIVER_RXE;
    std::uint32_t reserved2 = 0;
  };
  static_assert(sizeof(Header) == sizeof(ib_uverbs_ioctl_hdr));

  Ioctl(std::uint16_t object, std::uint16_t method);

  // Bytes in: in place if they are eight at most.
  Ioctl& in(std::uint16_t id, const void* bytes, std::size_t size);
  template <typename T>
  Ioctl& in(std::uint16_t id, const T& value) {
    return in(id, &value, sizeof(value));
  }
  Ioctl& constant(std::uint16_t id, std::uint64_t value) { return in(id, value); }
  Ioctl& out(std::uint16_t id, void* bytes, std::size_t size);
  template <typename T>
  Ioctl& out(std::uint16_t id, T& value) {
    return out(id, &value, sizeof(value));
  }
  // Of a handle or descriptor; also in the place of one that is to be made.
  Ioctl& object(std::uint16_t id, std::int64_t handle = 0);
  // The attribute that was added last.
  ib_uverbs_attr& last() { return attributes_.back(); }
  Header& header() { return header_; }

  // 0 or a negative errno.
  int run(verbs::EmulatedFile& file);
  // As the ioctl left it.
  [[nodiscard]] const ib_uverbs_attr& attribute(std::uint16_t id) const;
  [[nodiscard]] std::uint32_t handle(std::uint16_t id) const {
    return static_cast<std::uint32_t>(attribute(id).data);
  }

 private:
  Ioctl& add(std::uint16_t id, std::uint16_t length, std::uint64_t data);
  Header header_;
  std::vector<ib_uverbs_attr> attributes_;
};

class UverbsClient {
 public:
  UverbsClient(verbs::DeviceNode& node, Front front);
  ~UverbsClient();
  UverbsClient(const UverbsClient&) = delete;
  UverbsClient& operator=(const UverbsClient&) = delete;

  verbs::EmulatedFile& file() { return *file_; }
  [[nodiscard]] int fd() const { return fd_; }
  // As the last close of the program.
  void close_file() { file_.reset(); }

  struct Driver {
    std::span<const std::byte> in;
    std::span<std::byte> out;
  };
  // A command; 0 or a negative errno. `response` is null for commands without one.
  template <typename Request, typename Response>
  int run(std::uint32_t command, Request request, Response* response, Driver driver = {}) {
    return plain(command, &request, sizeof(request), response, sizeof(Response), driver);
  }
  template <typename Request>
  int run(std::uint32_t command, const Request& request, Driver driver = {}) {
    return plain(command, &request, sizeof(request), nullptr, 0, driver);
  }
  template <typename Request, typename Response>
  int run_extended(std::uint32_t command, const Request& request, Response* response,
                   Driver driver = {}) {
    return extended(command, &request, sizeof(request), response, sizeof(Response), driver);
  }

  // The same with any bytes as the request, and room for a response if there is to be one.
  int run_bytes(std::uint32_t command, std::span<const std::uint8_t> request,
                std::size_t response_size, Driver driver);

  // --- the usual objects. Each returns a handle; they must succeed.

  // GET_CONTEXT: the asynchronous descriptor.
  int open_context();
  std::uint32_t pd();
  std::uint32_t mr(std::uint32_t pd, void* start, std::size_t size, std::uint32_t access,
                   std::uint32_t* key = nullptr);
  int channel();
  struct Queue {
    std::uint32_t handle = 0;
    mminfo mapping{};
  };
  Queue cq(std::uint64_t user_handle, int channel = -1, std::uint32_t cqe = 16);
  Queue srq(std::uint32_t pd, std::uint64_t user_handle, std::uint32_t limit = 0);
  struct QueuePair {
    std::uint32_t handle = 0;
    std::uint32_t qpn = 0;
    rxe_create_qp_resp mappings{};
    ib_uverbs_qp_cap capabilities{};
  };
  // What a test wants otherwise goes into `adjust`.
  QueuePair qp(std::uint32_t pd, std::uint32_t cq, std::uint64_t user_handle,
               const ib_uverbs_create_qp& adjust = usual_qp());
  static ib_uverbs_create_qp usual_qp();
  // Takes an RC queue pair to RTS, or to a state before.
  void connect(const QueuePair& qp, std::uint32_t peer_qpn, const std::uint8_t* peer_gid,
               int last_state = 3);
  int modify(std::uint32_t qp, std::uint32_t mask, ib_uverbs_modify_qp attributes);
  [[nodiscard]] ib_uverbs_query_qp_resp query_qp(std::uint32_t qp);

  // A doorbell, byte for byte as librxe's.
  ssize_t ring(std::uint32_t qp);
  int request_notification(std::uint32_t cq, bool solicited_only = false);
  // Maps a ring, as the program does. It stays mapped until the client dies.
  rxe_queue_buf* map(const mminfo& where);

 private:
  int plain(std::uint32_t command, const void* request, std::size_t request_size, void* response,
            std::size_t response_size, Driver driver);
  int extended(std::uint32_t command, const void* request, std::size_t request_size, void* response,
               std::size_t response_size, Driver driver);
  int wrapped(std::uint32_t command, const void* request, std::size_t request_size, void* response,
              std::size_t response_size, Driver driver);

  Front front_;
  int fd_ = -1;
  std::shared_ptr<verbs::EmulatedFile> file_;
  std::vector<int> descriptors_;
  std::vector<std::pair<void*, std::size_t>> mappings_;
};

// Room for librxe's part of a response.
template <typename T>
UverbsClient::Driver driver_out(T& value) {
  return {.in = {}, .out = std::as_writable_bytes(std::span(&value, 1))};
}
template <typename T>
UverbsClient::Driver driver_in(const T& value) {
  return {.in = std::as_bytes(std::span(&value, 1)), .out = {}};
}

}  // namespace urxe::test
