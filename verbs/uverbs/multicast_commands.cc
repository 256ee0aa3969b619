// UD multicast. A group's GID is its IP address; LIDs mean nothing to RoCE.
#include "verbs/uverbs/command_table.h"

namespace urxe::verbs::uverbs {

Status attach_multicast(Context& context, const Command& command) {
  ib_uverbs_attach_mcast request{};
  if (auto read = command.read(request); !read) return read;
  const auto object = context.objects().find<QpObject>(request.qp_handle);
  if (!object) return tl::unexpected(object.error());
  return context.attach(**object, wire::IpAddress::from_bytes(request.gid));
}

Status detach_multicast(Context& context, const Command& command) {
  ib_uverbs_detach_mcast request{};
  if (auto read = command.read(request); !read) return read;
  const auto object = context.objects().find<QpObject>(request.qp_handle);
  if (!object) return tl::unexpected(object.error());
  return context.detach(**object, wire::IpAddress::from_bytes(request.gid));
}

}  // namespace urxe::verbs::uverbs
