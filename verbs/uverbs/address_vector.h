// Address vectors as the kernel's ABI lays them out.
#pragma once

#include <rdma/ib_user_verbs.h>

#include "emulator/address_vector.h"

namespace urxe::verbs::uverbs {

[[nodiscard]] emulator::AddressVector vector_of(const ib_uverbs_qp_dest& destination);
[[nodiscard]] emulator::AddressVector vector_of(const ib_uverbs_ah_attr& attributes);
[[nodiscard]] ib_uverbs_qp_dest destination_of(const emulator::AddressVector& vector);

}  // namespace urxe::verbs::uverbs
