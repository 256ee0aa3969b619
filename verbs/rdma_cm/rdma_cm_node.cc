#include "verbs/rdma_cm/rdma_cm_node.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>

#include "verbs/config/device_config.h"
#include "verbs/preload/quiet.h"

namespace urxe::verbs::rdma_cm {
namespace {

// An event channel as the program sees it: commands are written to it.
class RdmaCmFile final : public EmulatedFile {
 public:
  RdmaCmFile(std::shared_ptr<CmAgent> agent, std::shared_ptr<EventChannel> channel)
      : agent_(std::move(agent)), channel_(std::move(channel)) {}
  ~RdmaCmFile() override { agent_->close_channel(*channel_); }

  [[nodiscard]] dev_t device_number() const override { return rdma_cm_device(); }
  ssize_t write(const void* data, std::size_t size) override;
  int ioctl(unsigned long, void*) override { return -ENOTTY; }

 private:
  std::shared_ptr<CmAgent> agent_;
  std::shared_ptr<EventChannel> channel_;
};

ssize_t RdmaCmFile::write(const void* data, std::size_t size) {
  rdma_ucm_cmd_hdr header;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (size < sizeof(header)) return -EINVAL;
  if (Request(address, sizeof(header), 0).read(header) != 0) return -EFAULT;
  if (header.in + sizeof(header) > size) return -EINVAL;
  const Request request(address + sizeof(header), header.in, header.out);
  int failed = 0;
  if (header.cmd == RDMA_USER_CM_CMD_GET_EVENT) {
    failed = agent_->execute(*channel_, header.cmd, request);  // may wait
  } else {
    const NotCancelled not_cancelled;
    failed = agent_->execute(*channel_, header.cmd, request);
  }
  return failed != 0 ? failed : static_cast<ssize_t>(size);
}

}  // namespace

tl::expected<OpenedFile, int> RdmaCmNode::open(int flags) {
  auto opened = agent_->open_channel((flags & O_NONBLOCK) != 0);
  if (!opened) return tl::unexpected(opened.error());
  return OpenedFile{.fd = opened->fd,
                    .file = std::make_shared<RdmaCmFile>(agent_, opened->channel)};
}

}  // namespace urxe::verbs::rdma_cm
