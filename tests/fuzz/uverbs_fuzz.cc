// Commands made of arbitrary bytes, by both front ends, on one device.
//
// The input is a sequence of records: what to do, how many bytes follow, the bytes. Where a command
// names memory that is written, the address is put right, because the harness lives in the same
// process; that bad addresses are survived is for the unit tests.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/hosted_double.h"
#include "verbs/runtime/fault_guard.h"
#include "verbs/uverbs/command_table.h"
#include "verbs/uverbs/method_table.h"
#include "verbs/uverbs/uverbs_node.h"

namespace {

using namespace urxe;
using namespace urxe::verbs;
using urxe::fuzz::Input;
using urxe::fuzz::require;

constexpr int kErrnos = 4096;
constexpr int kMaxDescriptors = 256;
constexpr std::uint8_t kExtendedBit = 0x80;
constexpr std::uint8_t kDriverBit = 0x80;

// Where responses go, and what regions are made of: room for the longest that a header can name.
alignas(4096) std::array<std::uint8_t, std::size_t{1} << 21> scratch;
// What attributes point to that are longer than a word: an ib_uverbs_qp_cap that makes sense.
constexpr std::array<std::uint32_t, 64> kBytesIn{16, 16, 1, 1, 64};

std::uint64_t scratch_address() { return reinterpret_cast<std::uintptr_t>(scratch.data()); }

void put(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint64_t value) {
  if (at + sizeof(value) <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof(value));
}

// Addresses in the request that the command would write to, or let others write to.
void put_addresses_right(std::uint32_t command, std::vector<std::uint8_t>& request) {
  if (command == IB_USER_VERBS_CMD_REG_MR || command == IB_USER_VERBS_CMD_REREG_MR) {
    const bool again = command == IB_USER_VERBS_CMD_REREG_MR;
    const std::size_t start =
        again ? offsetof(ib_uverbs_rereg_mr, start) : offsetof(ib_uverbs_reg_mr, start);
    put(request, start, scratch_address());
    put(request, start + 8, scratch.size());
    put(request, start + 16, scratch_address());
  }
  if (command == IB_USER_VERBS_CMD_MODIFY_SRQ) {
    put(request, sizeof(ib_uverbs_modify_srq), scratch_address());
  }
}

class World {
 public:
  World() {
    auto opened = node_.open(0);
    require(opened.has_value(), "a device can be opened");
    fd_ = opened->fd;
    file_ = opened->file;
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    file_.reset();
    const auto left = source_.device().access()->census();
    require(left == emulator::Device::Census{}, "closing the file destroys everything");
    for (int fd = fd_; fd < fd_ + kMaxDescriptors; ++fd) ::close(fd);
  }

  void run(Input& input) {
    const std::uint8_t what = input.byte();
    Input record = [&] {
      const auto bytes = input.bytes(input.byte());
      return Input(bytes.data(), bytes.size());
    }();
    switch (what % 5) {
      case 0:
        return command(record, false);
      case 1:
        return command(record, true);
      case 2:
        return raw_write(record);
      case 3:
        return ioctl(record);
      default:
        return file_->drive();
    }
  }

 private:
  void check(ssize_t result, ssize_t success) {
    require(result == success || (result < 0 && result > -kErrnos), "a result or an errno");
  }

  // A command with a header that is right.
  void command(Input& input, bool wrapped) {
    const std::uint8_t number = input.byte();
    const std::uint32_t command =
        (number & ~kExtendedBit) |
        ((number & kExtendedBit) != 0 ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
    const auto rest = input.bytes(SIZE_MAX);
    std::vector<std::uint8_t> request(rest.begin(), rest.end());
    request.resize((request.size() + 7) / 8 * 8);
    if (wrapped) return invoke(command, std::move(request));
    put_addresses_right(command, request);
    const bool is_extended = (number & kExtendedBit) != 0;
    const auto entry = uverbs::find_command(command);
    if (entry && (*entry)->has_response && !is_extended) put(request, 0, scratch_address());
    std::vector<std::uint8_t> bytes(is_extended ? 24 : 8);
    bytes.insert(bytes.end(), request.begin(), request.end());
    const ib_uverbs_cmd_hdr header{
        .command = command,
        .in_words = static_cast<std::uint16_t>(is_extended ? request.size() / 8 : bytes.size() / 4),
        .out_words = 64};
    std::memcpy(bytes.data(), &header, sizeof(header));
    if (is_extended) {
      const ib_uverbs_ex_cmd_hdr rest_of_header{.response = scratch_address(),
                                                .provider_in_words = 0,
                                                .provider_out_words = 8,
                                                .cmd_hdr_reserved = 0};
      std::memcpy(bytes.data() + sizeof(header), &rest_of_header, sizeof(rest_of_header));
    }
    check(file_->write(bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  // Whatever stands there, header and all.
  void raw_write(Input& input) {
    const auto rest = input.bytes(SIZE_MAX);
    std::vector<std::uint8_t> bytes(rest.begin(), rest.end());
    put(bytes, 8, scratch_address());
    std::uint32_t command = 0;
    if (bytes.size() >= sizeof(command)) std::memcpy(&command, bytes.data(), sizeof(command));
    constexpr std::array kWithAddresses{IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_REREG_MR,
                                        IB_USER_VERBS_CMD_MODIFY_SRQ};
    const bool named =
        std::find(kWithAddresses.begin(), kWithAddresses.end(), command) != kWithAddresses.end();
    if (named) return;
    check(file_->write(bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  void run_ioctl(std::uint16_t object, std::uint16_t method,
                 const std::vector<ib_uverbs_attr>& attributes) {
    struct {
      std::uint16_t length, object_id, method_id, num_attrs;
      std::uint64_t reserved1 = 0;
      std::uint32_t driver_id = RDMA_DRIVER_RXE, reserved2 = 0;
    } header{.length = 0, .object_id = object, .method_id = method, .num_attrs = 0};
    const std::size_t size = attributes.size() * sizeof(ib_uverbs_attr);
    header.num_attrs = static_cast<std::uint16_t>(attributes.size());
    header.length = static_cast<std::uint16_t>(sizeof(header) + size);
    std::vector<std::uint8_t> bytes(sizeof(header) + size);
    std::memcpy(bytes.data(), &header, sizeof(header));
    if (size > 0) std::memcpy(bytes.data() + sizeof(header), attributes.data(), size);
    check(file_->ioctl(RDMA_VERBS_IOCTL, bytes.data()), 0);
  }

  static ib_uverbs_attr attribute(std::uint16_t id, std::size_t length, std::uint64_t data) {
    ib_uverbs_attr attribute{};
    attribute.attr_id = id;
    attribute.len = static_cast<std::uint16_t>(length);
    attribute.data = data;
    return attribute;
  }

  void invoke(std::uint32_t command, std::vector<std::uint8_t> request) {
    put_addresses_right(command, request);
    std::uint64_t data = reinterpret_cast<std::uintptr_t>(request.data());
    if (request.size() <= sizeof(data)) {
      data = 0;
      if (!request.empty()) std::memcpy(&data, request.data(), request.size());
    }
    const std::uint64_t srq_mapping = scratch_address();
    run_ioctl(
        UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE,
        {attribute(UVERBS_ATTR_WRITE_CMD, 8, command),
         attribute(UVERBS_ATTR_CORE_IN, request.size(), data),
         attribute(UVERBS_ATTR_CORE_OUT, 256, scratch_address()),
         attribute(UVERBS_ATTR_UHW_IN,
                   command == IB_USER_VERBS_CMD_MODIFY_SRQ ? sizeof(srq_mapping) : 0, srq_mapping),
         attribute(UVERBS_ATTR_UHW_OUT, 64, scratch_address() + 1024)});
  }

  // Three bytes say which method and how many attributes; of each its number, length and data.
  void ioctl(Input& input) {
    const std::uint16_t object = input.byte();
    const std::uint16_t number = input.byte();
    if (object == UVERBS_OBJECT_DEVICE && number == UVERBS_METHOD_INVOKE_WRITE) return;
    const uverbs::Method* const method = uverbs::find_method(object, number);
    std::vector<ib_uverbs_attr> attributes;
    while (!input.empty() && attributes.size() < 32) {
      const std::uint8_t id = input.byte();
      ib_uverbs_attr next =
          attribute(static_cast<std::uint16_t>((id & kDriverBit) != 0 ? 0x1000 | (id & 1) : id),
                    input.byte(), 0);
      const auto data = input.bytes(8);
      if (!data.empty()) std::memcpy(&next.data, data.data(), data.size());
      next.flags = (id & 0x40) != 0 ? UVERBS_ATTR_F_MANDATORY : 0;
      next.attr_id &= 0xFFBF;
      if (is_output(method, next)) {
        next.data = scratch_address();
      } else if (next.len > sizeof(next.data)) {
        next.data = reinterpret_cast<std::uintptr_t>(kBytesIn.data());
      }
      attributes.push_back(next);
    }
    run_ioctl(object, number, attributes);
  }

  static bool is_output(const uverbs::Method* method, const ib_uverbs_attr& attribute) {
    if (method == nullptr) return false;
    return std::any_of(method->attributes.begin(), method->attributes.end(), [&](const auto& spec) {
      return spec.id == attribute.attr_id && spec.type == uverbs::AttributeType::out;
    });
  }

  DeviceConfig config_ = [] {
    DeviceConfig config;
    config.name = "rxe0";
    config.netdev = "lo";
    config.addresses = {wire::IpAddress::from_v4(0x7F000001)};
    return config;
  }();
  test::SourceDouble source_{config_.addresses};
  UverbsNode node_{config_, source_};
  int fd_ = -1;
  std::shared_ptr<EmulatedFile> file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  require(FaultGuard::arm(&::sigaction), "the guard of memory faults stands");
  World world;
  Input input(data, size);
  while (!input.empty()) world.run(input);
  return 0;
}
