#include "emulator/qp_context.h"

namespace urxe::emulator {

VendorError vendor_error_of(MemoryFault fault) {
  switch (fault) {
    case MemoryFault::unknown_key:
      return VendorError::bad_local_key;
    case MemoryFault::other_domain:
      return VendorError::local_other_domain;
    case MemoryFault::no_permission:
      return VendorError::local_no_permission;
    case MemoryFault::out_of_bounds:
      return VendorError::local_out_of_bounds;
    case MemoryFault::gone:
      return VendorError::memory_gone;
  }
  return VendorError::none;
}

}  // namespace urxe::emulator
