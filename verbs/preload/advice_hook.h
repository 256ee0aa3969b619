// Lets programs give advice on memory regions although their librxe cannot pass it on.
#pragma once

struct ibv_context;

namespace urxe::verbs {

// Our devices take advice (ADVISE_MR), as newer kernels' rxe does, and newer versions of librxe
// pass it on. After this call ibv_advise_mr() on `context` gives the command itself if librxe says
// that it has no such operation. Uses only what <infiniband/verbs.h> makes public. A context that
// is not on one of our devices is left alone.
//
// Any thread may call, once per opened context.
void hook_advice(ibv_context& context) noexcept;

}  // namespace urxe::verbs
