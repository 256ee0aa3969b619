// A device, a protection domain, and queue pairs that are connected to each other.
#pragma once

#include <cstdint>
#include <vector>

#include <infiniband/verbs.h>

namespace urxe::bench {

[[noreturn]] void die(const char* what);

// `pointer`, unless it is null: then the program ends with what errno says.
template <typename Object>
Object* made(Object* pointer, const char* what) {
  if (pointer == nullptr) die(what);
  return pointer;
}

struct Objects {
  ibv_context* context;
  ibv_pd* pd;
  ibv_cq* cq;
};

// Of the first device.
Objects open_first_device(int cq_entries);
// RC queue pairs with room for `depth` requests; the first is connected to the second and so on.
std::vector<ibv_qp*> make_connected(const Objects& objects, std::size_t count, std::uint32_t depth);

}  // namespace urxe::bench
