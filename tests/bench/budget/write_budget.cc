// RDMA WRITEs through all of the hot path, for a count of instructions: write_budget BYTES COUNT.
// The rings that librxe maps, both devices and their sockets on loopback; one thread, and time
// that stands still but for a microsecond a turn, so that the same happens each time.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <poll.h>

#include "emulator/device.h"
#include "net/udp/slot.h"
#include "net/udp/udp_fabric.h"
#include "tests/support/bring_up.h"
#include "tests/support/ring_program.h"
#include "verbs/rings/completion_ring.h"
#include "verbs/rings/receive_ring.h"
#include "verbs/rings/send_ring.h"
#include "verbs/runtime/guarded_memory.h"

namespace urxe::bench {
namespace {

using namespace emulator;
using namespace std::chrono_literals;

constexpr std::uint32_t kDepth = 128;
constexpr std::uint32_t kInFlight = 64;            // WRITEs that are posted together, at most
constexpr std::uint32_t kMaxPosted = 1024 * 1024;  // bytes of them
constexpr std::uint32_t kWarmUp = 256;
constexpr std::size_t kReceiveBudget = 128;
constexpr __u32 kSendSignaled = 2;  // IBV_SEND_SIGNALED

template <typename Value>
Value must(tl::expected<Value, int> result) {
  if (!result) std::exit(3);
  return std::move(*result);
}

struct End final : net::Receiver {
  explicit End(std::uint32_t last_byte);

  void on_packet(Time now, const wire::Inbound& packet) override {
    device.handle_packet(now, packet);
  }
  void move(Time now);
  void wait() const;

  wire::IpAddress address;
  std::unique_ptr<net::UdpFabric> fabric;
  std::shared_ptr<verbs::RingMemory> ring_memory = must(verbs::RingMemory::create());
  std::unique_ptr<verbs::SendRing> sends =
      must(verbs::SendRing::create(*ring_memory, {.max_wr = kDepth, .max_sge = 1}));
  std::unique_ptr<verbs::ReceiveRing> receives =
      must(verbs::ReceiveRing::create(*ring_memory, 1, 1, false));
  std::unique_ptr<verbs::CompletionRing> completions =
      must(verbs::CompletionRing::create(*ring_memory, kDepth));
  verbs::GuardedMemory memory;
  Device device;
  QueuePair* qp = nullptr;
  MemoryRegion* region = nullptr;
  std::vector<std::uint8_t> data = std::vector<std::uint8_t>(kMaxPosted);
};

std::unique_ptr<net::UdpFabric> open_fabric(const wire::IpAddress& address) {
  net::UdpOptions options;
  options.addresses = {{.address = address, .interface = 1}};
  options.segmentation = net::Segmentation::always;
  auto fabric = net::UdpFabric::open(options);
  if (!fabric) {
    // As a script says that a test cannot run.
    std::printf("SKIPPED: %s\n", fabric.error().sentence.c_str());
    std::exit(0);
  }
  return std::move(*fabric);
}

DeviceOptions device_options() {
  DeviceOptions options;
  options.port_mtu = Mtu::bytes4096;
  options.initial_window = options.max_window;
  return options;
}

End::End(std::uint32_t last_byte)
    : address(wire::IpAddress::from_v4(0x7F000000 + last_byte)),
      fabric(open_fabric(address)),
      device(device_options(), memory,
             {net::first_qpn_of(fabric->slots().front().slot), net::kQpnsPerSlot}) {
  device.assign_gids({address});
  ProtectionDomain* const pd = *device.create_pd();
  CompletionQueue* const cq = *device.create_cq(*completions);
  qp = *device.create_qp(*pd, {.send_cq = cq,
                               .receive_cq = cq,
                               .send_source = sends.get(),
                               .receive_source = receives.get(),
                               .capabilities = {.max_send_wr = kDepth, .max_send_sge = 1}});
  const auto start = reinterpret_cast<std::uintptr_t>(data.data());
  region = *device.register_region(
      *pd,
      {.start = start, .length = data.size(), .iova = start, .access = kLocalWrite | kRemoteWrite});
}

void End::move(Time now) {
  fabric->receive(now, *this, kReceiveBudget);
  while (device.has_output()) {
    const wire::MutableBytes slot = fabric->reserve();
    if (slot.empty()) break;
    const auto outbound = device.poll_transmit(now, slot);
    if (!outbound) break;
    fabric->commit(now, *outbound);
  }
  fabric->flush(now);
}

void connect(End& end, const End& peer) {
  QpAttributes attributes;
  attributes.path_mtu = Mtu::bytes4096;
  attributes.destination = peer.qp->qpn();
  attributes.access = kLocalWrite | kRemoteWrite;
  attributes.vector.destination = peer.address;
  attributes.vector.global = true;
  attributes.timeout = 0;  // never
  attributes.retry_count = attributes.rnr_retry = 7;
  test::bring_up(*end.qp, attributes);
}

// Sleeps in the kernel until something has arrived, so that no turn is for nothing.
void End::wait() const {
  std::vector<pollfd> descriptors;
  fabric->wait_for(descriptors);
  if (poll(descriptors.data(), descriptors.size(), 5000) <= 0) std::exit(4);
}

class Writer {
 public:
  Writer(End& client, End& server, std::uint32_t size)
      : client_(client),
        server_(server),
        size_(size),
        batch_(std::min(kInFlight, kMaxPosted / 2 / size)),
        poster_(client.sends->area().bytes()),
        poller_(client.completions->area().bytes()) {
    sge_.addr = reinterpret_cast<std::uintptr_t>(client.data.data());
    sge_.length = size;
    sge_.lkey = client.region->key();
  }

  void write(std::uint32_t count) {
    for (std::uint32_t done = 0; done < count; done += batch_) write_batch();
  }

 private:
  void write_batch() {
    for (std::uint32_t i = 0; i < batch_; ++i) {
      post();
      if (!client_.qp->ring_doorbell()) std::exit(5);
    }
    client_.move(now_);
    for (std::uint32_t completed = 0; completed < batch_; completed += reap()) {
      now_ += 1us;
      server_.wait();
      server_.move(now_);
      client_.wait();
      client_.move(now_);
    }
  }
  void post() {
    rxe_send_wqe wqe{};
    wqe.wr.opcode = IB_UVERBS_WR_RDMA_WRITE;
    wqe.wr.send_flags = kSendSignaled;
    wqe.wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(server_.data.data());
    wqe.wr.wr.rdma.rkey = server_.region->key();
    wqe.dma.length = wqe.dma.resid = size_;
    wqe.dma.num_sge = 1;
    if (!poster_.post(wqe, std::as_bytes(std::span(&sge_, 1)))) std::exit(5);
  }
  std::uint32_t reap() {
    std::uint32_t count = 0;
    while (const auto completion = poller_.poll()) {
      if (completion->status != 0) std::exit(6);
      ++count;
    }
    return count;
  }

  End& client_;
  End& server_;
  std::uint32_t size_;
  std::uint32_t batch_;
  Time now_{1s};
  rxe_sge sge_{};
  test::RingPoster poster_;
  test::RingPoller poller_;
};

}  // namespace

// Callgrind counts in here (--toggle-collect).
extern "C" [[gnu::noinline]] void urxe_measured_writes(Writer& writer, std::uint32_t count);
void urxe_measured_writes(Writer& writer, std::uint32_t count) { writer.write(count); }

}  // namespace urxe::bench

int main(int argc, char** argv) {
  using namespace urxe::bench;
  if (argc != 3) return 2;
  const auto size = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  const auto count = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  if (size == 0 || size > kMaxPosted / 2) return 2;
  // Large, so not on the stack.
  const auto client = std::make_unique<End>(71U);
  const auto server = std::make_unique<End>(72U);
  connect(*client, *server);
  connect(*server, *client);
  Writer writer(*client, *server, size);
  writer.write(kWarmUp);
  urxe_measured_writes(writer, count);
  return 0;
}
