// The ioctl() front end: a method of an object, with attributes.
#pragma once

#include <cstdint>

#include "verbs/uverbs/context.h"

namespace urxe::verbs::uverbs {

// Runs what stands at `header` (an ib_uverbs_ioctl_hdr with its attributes). EPROTONOSUPPORT: the
// method is not known, and libibverbs falls back to a write() command if there is one.
Status run_ioctl(Context& context, std::uint64_t header);

}  // namespace urxe::verbs::uverbs
