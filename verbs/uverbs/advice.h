// Advice on memory regions.
#pragma once

#include "verbs/uverbs/method_table.h"

namespace urxe::verbs::uverbs {

// ADVISE_MR: prefetching ranges of on-demand paging regions. As by Linux's rxe, and by mlx5 where
// that says more: EINVAL for a key that is not such a region's, EPERM for a region of another
// protection domain or one that may not be written, EFAULT for a range that is outside of it or not
// mapped; EOPNOTSUPP for other advice. Without FLUSH the program does not wait, and does not hear
// of memory that is not there.
[[nodiscard]] Status advise_mr(Context& context, const Attributes& attributes);

}  // namespace urxe::verbs::uverbs
