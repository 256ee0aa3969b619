// Port numbers of the identifiers of this process, per port space (the kernel's rdma_bind_list).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "verbs/rdma_cm/identifier.h"

namespace urxe::verbs::rdma_cm {

// Owner: the agent, under its lock. Results are 0 or a negative errno.
class PortTable {
 public:
  explicit PortTable(std::uint32_t seed) : next_(seed) {}

  // Gives `id` the port of its source address, or one from the range of ephemeral ports.
  [[nodiscard]] int bind(Identifier& id);
  // Before it listens: nobody else may have the port, even if both allowed reuse.
  [[nodiscard]] int check_exclusive(const Identifier& id) const;
  void release(Identifier& id);

 private:
  [[nodiscard]] int bind_ephemeral(Identifier& id, wire::PortSpace space);
  [[nodiscard]] int check(const Identifier& id, PortKey key, bool reuse) const;
  [[nodiscard]] bool is_unique(const Identifier& id, PortKey key) const;
  void insert(Identifier& id, PortKey key);

  std::map<PortKey, std::vector<Identifier*>> owners_;
  std::uint32_t next_;
};

}  // namespace urxe::verbs::rdma_cm
