// Address handles: destinations of UD requests that were resolved once (IBTA 10.2.2.2).
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "emulator/address_vector.h"
#include "emulator/memory.h"
#include "emulator/use_count.h"

namespace urxe::emulator {

class AddressHandle {
 public:
  AddressHandle(ProtectionDomain& pd, const AddressVector& vector, std::uint32_t number)
      : pd_(pd), vector_(vector), number_(number) {}
  [[nodiscard]] const ProtectionDomain& pd() const { return *pd_; }
  [[nodiscard]] const AddressVector& vector() const { return vector_; }
  // What librxe writes into its requests (ah_num); never 0.
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  friend class AddressHandleTable;
  Use<ProtectionDomain> pd_;
  AddressVector vector_;
  std::uint32_t number_;
};

class AddressHandleTable {
 public:
  AddressHandle& create(ProtectionDomain& pd, const AddressVector& vector) {
    while (next_ == 0 || handles_.contains(next_)) ++next_;
    auto& handle = handles_[next_];
    handle = std::make_unique<AddressHandle>(pd, vector, next_);
    ++next_;
    return *handle;
  }
  void destroy(AddressHandle& handle) { handles_.erase(handle.number()); }
  [[nodiscard]] const AddressHandle* find(std::uint32_t number) const {
    const auto found = handles_.find(number);
    return found == handles_.end() ? nullptr : found->second.get();
  }
  [[nodiscard]] std::size_t size() const { return handles_.size(); }

 private:
  std::map<std::uint32_t, std::unique_ptr<AddressHandle>> handles_;
  std::uint32_t next_ = 1;
};

}  // namespace urxe::emulator
