// A device under fire: an input is a sequence of packets into an established pair of queue pairs,
// with right and with wrong ICRCs, mixed with the programs' own requests, receives and time.
//
// Whatever comes: memory outside of regions is not touched, the device comes to an end, and when
// all is destroyed nothing is left of it.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/icrc.h"
#include "tests/fuzz/fuzz.h"
#include "tests/sim/pair_world.h"

namespace {

using urxe::fuzz::Input;
using urxe::fuzz::require;
using namespace urxe;
using namespace urxe::test;
using emulator::WorkOpcode;
using namespace std::chrono_literals;

constexpr std::size_t kMostSteps = 48;
constexpr std::size_t kBufferSize = 4096;
constexpr std::uint32_t kMtu = 256;

WorldOptions options_for(emulator::QpType type) {
  WorldOptions options;
  options.type = type;
  options.timeout = 6;
  options.rnr_retry = 3;
  options.signal_all = true;
  return options;
}

emulator::QpType type_of(std::uint8_t byte) {
  if (byte % 5 == 3) return emulator::QpType::uc;
  return byte % 5 == 4 ? emulator::QpType::ud : emulator::QpType::rc;
}

class World {
 public:
  explicit World(emulator::QpType type) : pair_(options_for(type)) {
    for (std::size_t i = 0; i < 2; ++i) {
      End& end = pair_.end(i);
      const std::uint64_t start = end.host.memory().map(kBufferSize);
      regions_.at(i) = *end.host.device().register_region(
          *end.pd, {.start = start,
                    .length = kBufferSize,
                    .iova = start,
                    .access = emulator::kLocalWrite | emulator::kRemoteWrite |
                              emulator::kRemoteRead | emulator::kRemoteAtomic});
    }
  }

  void step(Input& input) {
    const std::uint8_t what = input.byte();
    const std::size_t end = what >> 7;
    switch (what % 8) {
      case 0:
        return post(end, input);
      case 1:
        return pair_.end(end).post_receive(buffer(end));
      case 2:
        static_cast<void>(pair_.run(std::chrono::microseconds(input.byte()) * 8, 2000));
        return;
      case 3:
        return inject_raw(end, input);
      default:
        return inject(end, input);
    }
  }

  void finish() {
    static_cast<void>(pair_.run(100ms, 20000));
    for (std::size_t i = 0; i < 2; ++i) {
      End& end = pair_.end(i);
      emulator::Device& device = end.host.device();
      require(device.destroy(*end.qp).has_value(), "a queue pair can be destroyed");
      require(device.destroy(*regions_.at(i)).has_value(), "a region can be deregistered");
      require(device.destroy(*end.send_cq) && device.destroy(*end.receive_cq),
              "completion queues can be destroyed");
      require(device.destroy(*end.pd).has_value(), "a protection domain can be destroyed");
      require(device.census() == emulator::Device::Census{}, "nothing is left");
      require(!device.has_output() && device.next_deadline() == kNever, "nothing is due");
      require(end.host.memory().faults == 0, "only regions are touched");
    }
  }

 private:
  [[nodiscard]] Buffer buffer(std::size_t end) const {
    const emulator::MemoryRegion& region = *regions_.at(end);
    return {region.spec().start, kBufferSize, region.key()};
  }

  void post(std::size_t end, Input& input) {
    static constexpr std::array kOpcodes{
        WorkOpcode::send,         WorkOpcode::rdma_write,
        WorkOpcode::rdma_read,    WorkOpcode::compare_swap,
        WorkOpcode::fetch_add,    WorkOpcode::send_with_immediate,
        WorkOpcode::atomic_write, WorkOpcode::rdma_write_with_immediate};
    const WorkOpcode opcode = kOpcodes.at(input.byte() % kOpcodes.size());
    const bool eight = opcode == WorkOpcode::compare_swap || opcode == WorkOpcode::fetch_add ||
                       opcode == WorkOpcode::atomic_write;
    const std::size_t length = eight ? 8 : input.word() % kBufferSize;
    OwnedSend send = PairWorld::request(opcode, buffer(end), length, buffer(1 - end));
    send.request.datagram = {.handle_number = 0,
                             .vector = pair_.attributes(end).vector,
                             .qpn = pair_.end(1 - end).qp->qpn(),
                             .qkey = wire::QKey{0x11111111}};
    static_cast<void>(pair_.end(end).post(std::move(send)));
  }

  // A packet near to what the queue pair waits for: a request, or an answer to what it sent.
  void inject(std::size_t to, Input& input) {
    wire::Packet packet;
    const std::uint8_t flags = input.byte();
    const wire::OpcodeInfo* info = wire::find_opcode(input.byte());
    if (info == nullptr) return;
    packet.info = info;
    packet.bth.opcode = static_cast<std::uint8_t>(info->opcode);
    packet.bth.ack_request = (flags & 1) != 0;
    packet.bth.solicited = (flags & 2) != 0;
    packet.bth.destination = pair_.end(to).qp->qpn();
    const emulator::QpAttributes attributes = pair_.attributes(to);
    const wire::Psn start = info->is_response() ? attributes.send_psn : attributes.receive_psn;
    packet.bth.psn = start + input.byte() - 64;  // mostly ahead or already gone
    fill_headers(packet, to, flags, input);
    std::size_t size = 0;
    if (info->payload != wire::PayloadRule::none) {
      size = info->payload == wire::PayloadRule::exact_mtu ? kMtu : input.word() % (kMtu + 8);
    }
    packet.bth.pad_count = wire::pad_count(size);
    std::array<std::uint8_t, 128> headers{};
    const std::size_t header_size = wire::write_headers(packet, headers);
    roce_.assign(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(header_size));
    roce_.resize(header_size + size + packet.bth.pad_count);
    deliver(to, (flags & 0x30) == 0x30);
  }

  void fill_headers(wire::Packet& packet, std::size_t to, std::uint8_t flags, Input& input) const {
    const Buffer target = buffer(to);
    const std::uint32_t key = (flags & 4) != 0 ? target.key ^ input.byte() : target.key;
    const std::uint64_t offset = (flags & 8) != 0 ? input.word() : 0;
    packet.reth = {
        .address = target.address + offset, .rkey = wire::RKey{key}, .length = input.word()};
    packet.atomic = {.address = target.address + offset,
                     .rkey = wire::RKey{key},
                     .swap_or_add = 1,
                     .compare = 0};
    packet.feth = {.placement = 1, .selectivity = input.byte()};
    packet.aeth = {.syndrome = wire::Syndrome{input.byte()}, .msn = wire::Msn{input.byte()}};
    packet.deth = {.qkey = wire::QKey{0x11111111}, .source = pair_.attributes(to).destination};
    packet.invalidate = wire::RKey{key};
  }

  void inject_raw(std::size_t to, Input& input) {
    const wire::Bytes bytes = input.bytes(input.byte());
    roce_.assign(bytes.begin(), bytes.end());
    deliver(to, false);
  }

  void deliver(std::size_t to, bool icrc_is_wrong) {
    const wire::Path path{.source = pair_.end(1 - to).host.address(),
                          .destination = pair_.end(to).host.address(),
                          .source_port = 0xC000,
                          .traffic_class = 2};
    const std::size_t roce_size = roce_.size() + wire::kIcrcSize;
    std::vector<std::uint8_t> frame(wire::ip_udp_size(true) + roce_size);
    const wire::Ipv4Fragment fragment;
    const std::size_t header = wire::write_ip_udp(frame, path, fragment, roce_size);
    std::copy(roce_.begin(), roce_.end(), frame.begin() + static_cast<std::ptrdiff_t>(header));
    if (roce_.size() >= wire::kBthSize) {
      const wire::IcrcSeed seed(path, roce_size);
      wire::store_icrc(wire::MutableBytes(frame).subspan(header),
                       wire::icrc(seed.value(fragment), roce_));
    }
    if (icrc_is_wrong) frame.back() ^= 1;
    net::SimNode& node = *pair_.network().nodes().at(to);
    node.take(pair_.network().simulation().now(), std::move(frame));
    static_cast<void>(pair_.run(0us, 200));
  }

  PairWorld pair_;
  std::array<emulator::MemoryRegion*, 2> regions_{};
  std::vector<std::uint8_t> roce_;  // BTH to pad
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  World world(type_of(input.byte()));
  for (std::size_t step = 0; step < kMostSteps && !input.empty(); ++step) world.step(input);
  world.finish();
  return 0;
}
