// Entry points in front of libibverbs.
#include <cerrno>

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include "verbs/preload/advice_hook.h"
#include "verbs/preload/entry_points.h"
#include "verbs/preload/libc.h"
#include "verbs/preload/poll_hook.h"
#include "verbs/preload/quiet.h"

namespace urxe::verbs {
namespace {

using OpenDevice = ibv_context* (*)(ibv_device*);

// libibverbs may have been loaded into a scope of its own (a plug-in, a Python module), where the
// search that RTLD_NEXT makes does not look.
OpenDevice find_open_device() {
  const Quiet quiet;
  constexpr const char* kName = "ibv_open_device";
  void* found = dlsym(RTLD_NEXT, kName);
  if (found == nullptr) {
    if (void* library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
      found = dlsym(library, kName);
      dlclose(library);
    }
  }
  return reinterpret_cast<OpenDevice>(found);
}

}  // namespace
}  // namespace urxe::verbs

using namespace urxe::verbs;

ibv_context* on_ibv_open_device(ibv_device* device) {
  const OpenDevice open_device = find_open_device();
  if (open_device == nullptr) {
    errno = ENOSYS;
    return nullptr;
  }
  ibv_context* const context = open_device(device);
  if (context != nullptr) {
    hook_polling(*context);
    hook_advice(*context);
  }
  return context;
}
