#include "verbs/uverbs/uverbs_node.h"

#include <cerrno>
#include <exception>

#include "verbs/preload/quiet.h"

namespace urxe::verbs {

tl::expected<OpenedFile, int> UverbsNode::open(int) {
  const NotCancelled not_cancelled;
  auto lease = source_.acquire();
  if (!lease) return tl::unexpected(lease.error());
  auto rings = RingMemory::create();
  if (!rings) return tl::unexpected(rings.error());
  try {
    OpenedFile opened;
    opened.file =
        std::make_shared<UverbsFile>(config_, *std::move(lease), dispatcher_, *rings, abi_);
    const auto fd = (*rings)->descriptor();
    if (!fd) return tl::unexpected(fd.error());
    opened.fd = *fd;
    return opened;
  } catch (const std::exception&) {
    return tl::unexpected(ENOMEM);
  }
}

void UverbsNode::after_fork_in_child() {
  dispatcher_->close_descriptors();
  // The parent's files keep the old one.
  dispatcher_ = std::make_shared<uverbs::Dispatcher>();
}

}  // namespace urxe::verbs
