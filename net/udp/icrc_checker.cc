#include "net/udp/icrc_checker.h"

#include "net/wire/opcode.h"

namespace urxe::net {

bool IcrcChecker::is_right(const wire::Path& path, wire::Bytes packet) {
  if (!seed_ || size_ != packet.size() || path_ != path) {
    path_ = path;
    size_ = packet.size();
    seed_.emplace(path, packet.size());
  }
  const std::uint32_t seed = seed_->value({.id = next_id_++});
  const std::uint32_t computed = wire::icrc(seed, packet.first(packet.size() - wire::kIcrcSize));
  const std::uint32_t received = wire::load_icrc(packet);
  if (computed == received) return true;
  // CRCs are linear: what is found is by what the identification differs from the one tried.
  return seed_->depends_on_id() && solver_.solve(computed, received, packet.size()).has_value();
}

}  // namespace urxe::net
