// What a program has created through one opened uverbs file, by handle.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "emulator/device.h"
#include "verbs/rings/completion_ring.h"
#include "verbs/rings/receive_ring.h"
#include "verbs/rings/send_ring.h"
#include "verbs/uverbs/event_channel.h"
#include "verbs/uverbs/refusal.h"

namespace urxe::verbs::uverbs {

enum class Kind : std::uint8_t { pd, mr, mw, cq, qp, srq, ah };
inline constexpr std::size_t kKinds = 7;
// With its article.
[[nodiscard]] const char* to_string(Kind kind);

struct Object {
  explicit Object(Kind object_kind) : kind(object_kind) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  const Kind kind;
  std::uint32_t handle = 0;
};

template <Kind K>
struct ObjectOf : Object {
  static constexpr Kind kKind = K;
  ObjectOf() : Object(K) {}
};

// What asynchronous events may be about.
struct EventSource {
  std::uint64_t user_handle = 0;  // what the program calls it
  std::shared_ptr<EventChannel> async;
  std::uint32_t async_events = 0;  // reported so far
};

struct PdObject : ObjectOf<Kind::pd> {
  emulator::ProtectionDomain* pd = nullptr;
};

struct MrObject : ObjectOf<Kind::mr> {
  emulator::MemoryRegion* region = nullptr;
};

struct MwObject : ObjectOf<Kind::mw> {
  emulator::MemoryWindow* window = nullptr;
};

struct AhObject : ObjectOf<Kind::ah> {
  emulator::AddressHandle* address = nullptr;
};

struct CqObject : ObjectOf<Kind::cq>, EventSource {
  std::unique_ptr<CompletionRing> ring;
  emulator::CompletionQueue* cq = nullptr;
  std::shared_ptr<EventChannel> channel;  // null: it has none
  std::uint32_t completion_events = 0;
};

struct SrqObject : ObjectOf<Kind::srq>, EventSource {
  std::unique_ptr<ReceiveRing> ring;
  emulator::SharedReceiveQueue* srq = nullptr;
};

struct QpObject : ObjectOf<Kind::qp>, EventSource {
  std::unique_ptr<SendRing> sends;
  std::unique_ptr<ReceiveRing> receives;  // null: it has an SRQ
  emulator::QueuePair* qp = nullptr;
  bool signal_all = false;
  std::vector<wire::IpAddress> groups;  // multicast, to which it is attached
};

// Handles as the kernel gives them out: one number space for all kinds, lowest first.
class ObjectTable {
 public:
  template <typename T>
  T& add(std::unique_ptr<T> object) {
    T& added = *object;
    insert(std::move(object));
    return added;
  }
  void erase(std::uint32_t handle);

  // As the kernel: ENOENT for an unknown handle, EINVAL for one of another kind.
  template <typename T>
  [[nodiscard]] Outcome<T*> find(std::uint32_t handle) const {
    Object* const object = handle < objects_.size() ? objects_[handle].get() : nullptr;
    if (object != nullptr && object->kind == T::kKind) return static_cast<T*>(object);
    return unknown(handle, T::kKind, object);
  }
  [[nodiscard]] const std::vector<std::unique_ptr<Object>>& all() const { return objects_; }

 private:
  void insert(std::unique_ptr<Object> object);
  [[nodiscard]] static tl::unexpected<Refusal> unknown(std::uint32_t handle, Kind wanted,
                                                       const Object* found);

  std::vector<std::unique_ptr<Object>> objects_;
  std::size_t lowest_free_ = 0;  // none is free below
};

}  // namespace urxe::verbs::uverbs
