#include "emulator/scatter_gather.h"

#include <algorithm>

namespace urxe::emulator {
namespace {

// One read of an element that the program may be changing.
Sge load(const Sge& sge) {
  const volatile Sge& source = sge;
  return {.address = source.address, .length = source.length, .lkey = source.lkey};
}

}  // namespace

void SgePosition::seek(std::span<const Sge> list, std::uint64_t offset) {
  index_ = 0;
  while (index_ < list.size()) {
    const std::uint32_t length = load(list[index_]).length;
    if (offset < length) break;
    offset -= length;
    ++index_;
  }
  offset_ = index_ < list.size() ? static_cast<std::uint32_t>(offset) : 0;
}

template <typename Move>
std::optional<LocalFault> SgePosition::for_each_piece(std::span<const Sge> list,
                                                      const Memory& memory, std::size_t size,
                                                      Access needs, Move move) {
  std::size_t done = 0;
  while (done < size) {
    if (index_ >= list.size()) return LocalFault{MemoryFault::out_of_bounds, {}};
    const Sge sge = load(list[index_]);
    if (offset_ >= sge.length) {
      ++index_;
      offset_ = 0;
      continue;
    }
    const std::size_t count = std::min<std::size_t>(size - done, sge.length - offset_);
    const auto address =
        memory.keys.resolve_local(memory.pd, sge.lkey, sge.address + offset_, count, needs);
    if (!address) return LocalFault{address.error(), sge};
    if (!move(*address, done, count)) return LocalFault{MemoryFault::gone, sge};
    done += count;
    offset_ += static_cast<std::uint32_t>(count);
  }
  return std::nullopt;
}

std::optional<LocalFault> SgePosition::gather(std::span<const Sge> list, const Memory& memory,
                                              std::span<std::uint8_t> to) {
  return for_each_piece(list, memory, to.size(), kLocalRead,
                        [&](std::uint64_t address, std::size_t offset, std::size_t count) {
                          return memory.program.read(address, to.subspan(offset, count));
                        });
}

std::optional<LocalFault> SgePosition::scatter(std::span<const Sge> list, const Memory& memory,
                                               std::span<const std::uint8_t> from) {
  return for_each_piece(list, memory, from.size(), kLocalWrite,
                        [&](std::uint64_t address, std::size_t offset, std::size_t count) {
                          return memory.program.write(address, from.subspan(offset, count));
                        });
}

std::optional<LocalFault> check_list(std::span<const Sge> list, const KeyTable& keys,
                                     const ProtectionDomain& pd, Access needs) {
  for (const Sge& element : list) {
    const Sge sge = load(element);
    if (sge.length == 0) continue;
    const auto address = keys.resolve_local(pd, sge.lkey, sge.address, sge.length, needs);
    if (!address) return LocalFault{address.error(), sge};
  }
  return std::nullopt;
}

}  // namespace urxe::emulator
