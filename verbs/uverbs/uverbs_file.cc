#include "verbs/uverbs/uverbs_file.h"

#include <exception>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "verbs/preload/quiet.h"
#include "verbs/runtime/log.h"
#include "verbs/uverbs/ioctl_front.h"
#include "verbs/uverbs/write_front.h"

namespace urxe::verbs {

using uverbs::Status;

namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// As librxe writes it: nothing but the header and a request without lists.
struct Doorbell {
  ib_uverbs_cmd_hdr header;
  std::uint64_t response;
  std::uint32_t qp_handle;
  std::uint32_t wr_count;
  std::uint32_t sge_count;
  std::uint32_t wqe_size;
};
static_assert(sizeof(Doorbell) == sizeof(ib_uverbs_cmd_hdr) + sizeof(ib_uverbs_post_send));

bool is_doorbell(const Doorbell& doorbell) {
  return doorbell.header.command == IB_USER_VERBS_CMD_POST_SEND &&
         doorbell.header.in_words * sizeof(std::uint32_t) == sizeof(Doorbell) &&
         doorbell.header.out_words >= 1 && doorbell.wr_count == 0 && doorbell.sge_count == 0 &&
         doorbell.wqe_size >= sizeof(ib_uverbs_send_wr);
}

}  // namespace

std::optional<Status> UverbsFile::run_doorbell(std::uint64_t data, std::size_t size) {
  Doorbell doorbell;
  if (size != sizeof(doorbell)) return std::nullopt;
  if (!uverbs::copy_from_user(&doorbell, data, sizeof(doorbell)) || !is_doorbell(doorbell)) {
    return std::nullopt;
  }
  const auto access = context_.host().access(HostedDevice::Haste::with_others);
  const auto object = context_.objects().find<uverbs::QpObject>(doorbell.qp_handle);
  if (!object) return tl::unexpected(object.error());
  if (auto rung = (*object)->qp->ring_doorbell(); !rung) return uverbs::refuse(rung.error());
  const std::uint32_t bad_wr = 0;
  if (!uverbs::copy_to_user(doorbell.response, &bad_wr, sizeof(bad_wr))) {
    return uverbs::bad_address("response", doorbell.response);
  }
  return Status{};
}

Status UverbsFile::run_write(std::uint64_t data, std::size_t size) {
  const auto written = uverbs::decode_write(data, size);
  if (!written) return tl::unexpected(written.error());
  const auto access = context_.host().access();
  auto done = written->entry->handler(context_, written->command);
  if (!done) return tl::unexpected(about(written->entry->name, std::move(done).error()));
  return done;
}

ssize_t UverbsFile::write(const void* data, std::size_t size) {
  const NotCancelled not_cancelled;
  try {
    const std::uint64_t address = address_of(data);
    auto status = run_doorbell(address, size);
    if (!status) status = run_write(address, size);
    const int error = finish(*status, "write");
    return error != 0 ? error : static_cast<ssize_t>(size);
  } catch (const std::exception&) {
    return -ENOMEM;
  }
}

int UverbsFile::ioctl(unsigned long request, void* argument) {
  if (request != RDMA_VERBS_IOCTL || abi_ == UverbsAbi::write_only) return -ENOTTY;
  const NotCancelled not_cancelled;
  try {
    const auto access = context_.host().access();
    return finish(uverbs::run_ioctl(context_, address_of(argument)), "ioctl");
  } catch (const std::exception&) {
    return -ENOMEM;
  }
}

int UverbsFile::finish(const Status& status, const char* how) const {
  if (status) return 0;
  const int error = status.error().error;
  if (logs(LogLevel::info) && !status.error().sentence.empty()) {
    log(LogLevel::info, fmt::format("{}: {} refused with {}: {}", config_.name, how,
                                    strerrorname_np(error), status.error().sentence));
  }
  return -error;
}

}  // namespace urxe::verbs
