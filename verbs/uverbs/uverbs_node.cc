#include "verbs/uverbs/uverbs_node.h"

#include "verbs/preload/quiet.h"

namespace urxe::verbs {

tl::expected<OpenedFile, int> UverbsNode::open(int) {
  const NotCancelled not_cancelled;
  auto lease = source_.acquire();
  if (!lease) return tl::unexpected(lease.error());
  auto rings = RingMemory::create();
  if (!rings) return tl::unexpected(rings.error());
  const auto fd = (*rings)->descriptor();
  if (!fd) return tl::unexpected(fd.error());
  return OpenedFile{.fd = *fd,
                    .file = std::make_shared<UverbsFile>(config_, *std::move(lease), dispatcher_,
                                                         *std::move(rings), abi_)};
}

void UverbsNode::after_fork_in_child() {
  dispatcher_->close_descriptors();
  // The parent's files keep the old one.
  dispatcher_ = std::make_shared<uverbs::Dispatcher>();
}

}  // namespace urxe::verbs
