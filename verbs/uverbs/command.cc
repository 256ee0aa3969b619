#include "verbs/uverbs/command.h"

#include <rdma/rdma_user_ioctl_cmds.h>

namespace urxe::verbs::uverbs {

Status Command::note_output() const {
  if (output_flags == 0) return {};
  std::uint16_t flags = 0;
  if (!copy_from_user(&flags, output_flags, sizeof(flags))) {
    return bad_address("attribute", output_flags);
  }
  flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  if (!copy_to_user(output_flags, &flags, sizeof(flags))) {
    return bad_address("attribute", output_flags);
  }
  return {};
}

}  // namespace urxe::verbs::uverbs
