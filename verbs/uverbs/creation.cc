#include "verbs/uverbs/creation.h"

namespace urxe::verbs::uverbs {

Status keep_if(const Status& told, Context& context, Object& object) {
  if (!told) [[maybe_unused]]
    const auto destroyed = context.destroy(object);
  return told;
}

}  // namespace urxe::verbs::uverbs
