// The rings on arbitrary memory. An input says what ring to make, what to do with it, and what the
// program writes over all of it, header and indexes included.
//
// Whatever is there: what comes out lies within the ring, is bounded by its limits, and there is
// not more of it than the ring holds.
#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "verbs/rings/completion_ring.h"
#include "verbs/rings/receive_ring.h"
#include "verbs/rings/send_ring.h"

namespace {

using urxe::fuzz::Input;
using urxe::fuzz::require;
using namespace urxe::verbs;
namespace emulator = urxe::emulator;

constexpr std::size_t kMostSteps = 64;

// What the program writes: some of the input, again and again to the end.
void overwrite(Input& input, std::span<std::byte> area) {
  const auto pattern = input.bytes(input.byte() * 8U);
  if (pattern.empty()) return;
  for (std::size_t i = 0; i < area.size(); ++i) area[i] = std::byte{pattern[i % pattern.size()]};
}

bool lies_in(const void* data, std::size_t size, const RingArea& area) {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::span<const std::byte> bytes = area.bytes();
  return begin >= bytes.data() + sizeof(rxe_queue_buf) &&
         begin + size <= bytes.data() + bytes.size();
}

void check_request(const SendRing& ring, const emulator::SendRequest& request) {
  const bool has_list = !request.sges.empty();
  const bool is_inline = !request.inline_data.empty();
  require(request.sges.size() <= ring.actual().max_sge, "a list is bounded");
  require(request.inline_data.size() <= ring.actual().max_inline, "inline data is bounded");
  require(!has_list || lies_in(request.sges.data(), request.sges.size_bytes(), ring.area()),
          "a list lies within the ring");
  require(!is_inline || lies_in(request.inline_data.data(), request.length, ring.area()),
          "inline data lies within the ring");
  require(!(has_list && is_inline), "data comes from one place");
  require(!request.malformed || (!has_list && !is_inline && request.length == 0),
          "a malformed request has no data");
}

// Retires some of what was taken, so that the program's index also falls behind what was.
class SendActor {
 public:
  explicit SendActor(SendRing& ring) : ring_(ring) {}

  void act(Input& input) {
    switch (input.byte() % 4) {
      case 0:
        ring_.clear();
        taken_ = 0;
        break;
      case 1:
        take_all();
        retire(input.byte() % (taken_ + 1));
        break;
      default:
        overwrite(input, ring_.area().bytes());
    }
  }

 private:
  void take_all() {
    emulator::SendRequest request;
    for (std::uint32_t left = ring_.waiting(); left > 0; --left) {
      require(ring_.take(request), "all that is posted can be taken");
      check_request(ring_, request);
      require(++taken_ <= ring_.actual().max_wr, "no more is taken than the ring holds");
    }
    require(!ring_.take(request), "no more than what is posted can be taken");
  }
  void retire(std::uint32_t count) {
    ring_.retire(count);
    taken_ -= count;
  }

  SendRing& ring_;
  std::uint32_t taken_ = 0;
};

void act_on(SendActor& actor, Input& input) { actor.act(input); }

void act_on(ReceiveRing& ring, Input& input) {
  switch (input.byte() % 4) {
    case 0:
      ring.clear();
      break;
    case 1: {
      require(ring.posted() <= ring.max_wr(), "what is posted is bounded");
      emulator::ReceiveRequest request;
      for (std::uint32_t left = ring.posted(); left > 0; --left) {
        require(ring.take(request), "all that is posted can be taken");
        require(request.sge_count <= ring.max_sge(), "a list is bounded");
        require(!request.malformed || request.sge_count == 0, "a malformed request has no list");
      }
      require(!ring.take(request), "no more than what is posted can be taken");
      break;
    }
    default:
      overwrite(input, ring.area().bytes());
  }
}

void act_on(CompletionRing& ring, Input& input) {
  if (input.byte() % 2 != 0) return overwrite(input, ring.area().bytes());
  const std::uint32_t room = ring.cqe() - ring.waiting();
  std::uint32_t pushed = 0;
  while (ring.push({.wr_id = input.byte()})) ++pushed;
  require(pushed == room, "as much as is free can be pushed");
}

template <typename Ring>
void run(Ring& ring, Input& input) {
  for (std::size_t step = 0; step < kMostSteps && !input.empty(); ++step) act_on(ring, input);
}

template <typename Ring>
void run_and_resize(RingMemory& memory, Ring& ring, Input& input) {
  const std::uint32_t size = input.byte() % 16;
  run(ring, input);
  if (const auto other = ring.resized(memory, size)) run(**other, input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto memory = RingMemory::create();
  require(memory.has_value(), "there is memory");
  const std::uint8_t kind = input.byte() % 3;
  const std::uint32_t elements = input.byte() % 16;
  if (kind == 0) {
    const std::uint32_t max_sge = input.byte() % (emulator::kMaxSge + 1);
    const auto ring = SendRing::create(
        **memory, {.max_wr = elements, .max_sge = max_sge, .max_inline = input.byte()});
    SendActor actor(**ring);
    run(actor, input);
  } else if (kind == 1) {
    const auto ring =
        ReceiveRing::create(**memory, elements, input.byte() % (emulator::kMaxSge + 1), false);
    run_and_resize(**memory, **ring, input);
  } else {
    const auto ring = CompletionRing::create(**memory, elements);
    run_and_resize(**memory, **ring, input);
  }
  return 0;
}
