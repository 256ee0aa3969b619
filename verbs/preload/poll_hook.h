// Lets a thread that polls a completion queue move the packets itself.
#pragma once

struct ibv_context;

namespace urxe::verbs {

// librxe's poll reads only memory, so a program that spins in ibv_poll_cq would wait for the
// progress thread: a context switch per packet. After this call an empty poll on `context` drives
// the device once, without blocking, and polls again; the same holds for extended completion queues
// that are created from now on. Uses only what <infiniband/verbs.h> makes public: the operations
// of the context and of the queue. A context that is not on one of our devices is left alone.
//
// Any thread may call, once per opened context.
void hook_polling(ibv_context& context) noexcept;

}  // namespace urxe::verbs
