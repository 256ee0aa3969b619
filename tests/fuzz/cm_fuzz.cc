// Connection management under fire: a server and a client with rdma_cm each, between whose own
// steps come packets to queue pair 1 with right ICRCs (real ones again, with bytes changed, with
// the identifiers of others, or made of nothing), and commands of arbitrary bytes.
//
// Whatever comes: every command returns 0 or an errno, and when both programs have closed their
// channels, neither identifiers nor connections, listeners or claimed names are left.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/cm_network.h"
#include "verbs/abi/rdma_cm_abi.h"

namespace {

using urxe::fuzz::Input;
using urxe::fuzz::require;
using namespace urxe;
using namespace urxe::test;
using verbs::abi::CmEventType;
using verbs::rdma_cm::SocketAddress;
using namespace std::chrono_literals;

constexpr std::size_t kMostSteps = 64;
constexpr std::size_t kMostSeen = 64;
constexpr int kErrnos = 4096;
constexpr std::uint16_t kPort = 7000;
constexpr std::size_t kMadAt = 20;           // behind BTH and DETH
constexpr std::size_t kIdsAt = kMadAt + 24;  // of most messages: ours, the peer's
constexpr std::size_t kIdsSize = 8;

// Where responses go: room for the longest that a header can name.
alignas(8) std::array<std::uint8_t, 0x10000> scratch;

std::uint64_t scratch_address() { return reinterpret_cast<std::uintptr_t>(scratch.data()); }

// A program: its event channel, and what it knows.
class Program {
 public:
  explicit Program(CmProcess& process) : process_(process) {
    auto opened = process.open(O_NONBLOCK);
    require(opened.has_value(), "a channel can be opened");
    opened_ = std::move(*opened);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { close(); }

  [[nodiscard]] CmProcess& process() { return process_; }
  void close() {
    if (opened_.fd >= 0) ::close(opened_.fd);
    opened_.fd = -1;
    opened_.file.reset();
  }

  int run(std::uint32_t number, wire::Bytes command, std::uint16_t out) {
    std::vector<std::uint8_t> bytes(sizeof(rdma_ucm_cmd_hdr));
    const rdma_ucm_cmd_hdr header{
        .cmd = number, .in = static_cast<std::uint16_t>(command.size()), .out = out};
    std::memcpy(bytes.data(), &header, sizeof(header));
    bytes.insert(bytes.end(), command.begin(), command.end());
    const auto result = opened_.file->write(bytes.data(), bytes.size());
    require(result == static_cast<ssize_t>(bytes.size()) || (result < 0 && result > -kErrnos),
            "a command returns its size or an errno");
    return result < 0 ? static_cast<int>(result) : 0;
  }
  template <typename Command>
  int run(std::uint32_t number, const Command& command) {
    return run(number, {reinterpret_cast<const std::uint8_t*>(&command), sizeof(command)}, 0x1000);
  }

  std::uint32_t create(std::uint16_t space) {
    rdma_ucm_create_id command{};
    command.uid = next_uid_++;
    command.response = scratch_address();
    command.ps = space;
    command.qp_type = 2;
    if (run(RDMA_USER_CM_CMD_CREATE_ID, command) != 0) return 0;
    std::uint32_t id = 0;
    std::memcpy(&id, scratch.data(), sizeof(id));
    ids_.push_back(id);
    return id;
  }
  [[nodiscard]] std::uint32_t some_id(std::uint8_t which) const {
    return ids_.empty() ? which : ids_[which % ids_.size()];
  }

  void listen(std::uint16_t space) {
    rdma_ucm_bind command{};
    command.id = create(space);
    const auto address = SocketAddress::of(*wire::IpAddress::parse("0.0.0.0"), kPort, AF_INET);
    command.addr_size = static_cast<std::uint16_t>(address.size());
    address.store(&command.addr);
    run(RDMA_USER_CM_CMD_BIND, command);
    run(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{.id = command.id, .backlog = 4});
  }

  void connect(std::uint16_t space) {
    rdma_ucm_resolve_addr resolve{};
    resolve.id = create(space);
    const auto address = SocketAddress::of(*wire::IpAddress::parse("10.0.0.1"), kPort, AF_INET);
    resolve.dst_size = static_cast<std::uint16_t>(address.size());
    address.store(&resolve.dst_addr);
    run(RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve);
    run(RDMA_USER_CM_CMD_RESOLVE_ROUTE,
        rdma_ucm_resolve_route{.id = resolve.id, .timeout_ms = 1000});
    rdma_ucm_connect command{};
    command.conn_param = parameters();
    command.id = resolve.id;
    run(RDMA_USER_CM_CMD_CONNECT, command);
  }

  // Takes the next event and does what a program does about it, or something else.
  void handle_event(std::uint8_t how) {
    rdma_ucm_get_event take{.response = scratch_address()};
    if (run(RDMA_USER_CM_CMD_GET_EVENT, take) != 0) return;
    rdma_ucm_event_resp event{};
    std::memcpy(&event, scratch.data(), sizeof(event));
    rdma_ucm_accept answer{};
    answer.id = event.id;
    switch (static_cast<CmEventType>(event.event)) {
      case CmEventType::connect_request:
        ids_.push_back(event.id);
        if (how % 4 == 0) return reject(event.id);
        answer.uid = next_uid_++;
        answer.conn_param = parameters();
        run(RDMA_USER_CM_CMD_ACCEPT, answer);
        return;
      case CmEventType::connect_response:
        if (how % 4 == 0) return reject(event.id);
        run(RDMA_USER_CM_CMD_ACCEPT, answer);
        return;
      default:
        if (how % 4 == 0) run(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{.id = event.id});
    }
  }

  void command_on(std::uint32_t id, std::uint8_t what) {
    switch (what % 7) {
      case 0:
        run(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{.id = id});
        return;
      case 1:
        run(RDMA_USER_CM_CMD_DESTROY_ID,
            rdma_ucm_destroy_id{.response = scratch_address(), .id = id, .reserved = 0});
        return;
      case 2:
        run(RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{.id = id, .event = 4});
        return;
      case 3:
        run(RDMA_USER_CM_CMD_INIT_QP_ATTR,
            rdma_ucm_init_qp_attr{.response = scratch_address(), .id = id, .qp_state = what % 8U});
        return;
      case 4:
        run(RDMA_USER_CM_CMD_MIGRATE_ID,
            rdma_ucm_migrate_id{.response = scratch_address(),
                                .id = id,
                                .fd = static_cast<std::uint32_t>(opened_.fd)});
        return;
      case 5:
        run(RDMA_USER_CM_CMD_QUERY_ROUTE,
            rdma_ucm_query{.response = scratch_address(), .id = id, .option = 0});
        return;
      default:
        return reject(id);
    }
  }

 private:
  static rdma_ucm_conn_param parameters() {
    rdma_ucm_conn_param parameters{};
    parameters.qp_num = 0x4001;
    parameters.responder_resources = parameters.initiator_depth = 4;
    parameters.retry_count = parameters.rnr_retry_count = 7;
    parameters.valid = 1;
    return parameters;
  }
  void reject(std::uint32_t id) {
    rdma_ucm_reject command{};
    command.id = id;
    run(RDMA_USER_CM_CMD_REJECT, command);
  }

  CmProcess& process_;
  verbs::OpenedFile opened_;
  std::vector<std::uint32_t> ids_;
  std::uint64_t next_uid_ = 1;
};

class World {
 public:
  World() {
    network_.watch = [this](const CmNetwork::Packet& packet) {
      if (seen_.size() < kMostSeen) seen_.push_back(packet);
    };
    server_.listen(RDMA_PS_TCP);
    server_.listen(RDMA_PS_UDP);
  }

  void step(Input& input) {
    const std::uint8_t what = input.byte();
    Program& program = (what & 0x80) != 0 ? server_ : client_;
    switch (what % 9) {
      case 0:
        return repeat(input);
      case 1:
        return forge(input);
      case 2:
        return inject_raw(input, (what & 0x80) != 0);
      case 3:
        return pass_time(input);
      case 4:
        return raw_command(program, input);
      case 5:
        client_.connect((what & 0x80) != 0 ? RDMA_PS_UDP : RDMA_PS_TCP);
        break;
      case 6:
        return program.handle_event(input.byte());
      case 7:
        program.command_on(program.some_id(input.byte()), input.byte());
        break;
      default:
        disturb(program, input.byte());
    }
    network_.run();
  }

  void finish() {
    network_.loses_all = false;
    network_.run(10s);
    for (Program* program : {&client_, &server_}) {
      program->close();
      network_.run(200s);
    }
    for (Program* program : {&client_, &server_}) {
      CmHost& host = program->process().host();
      require(program->process().agent().identifiers() == 0, "no identifier is left");
      require(host.engine().cm().connections() == 0, "no connection is left");
      require(host.engine().cm().listeners() == 0, "no listener is left");
      require(host.names.empty(), "no name is left");
      require(!host.engine().has_output(), "nothing is to be sent");
    }
  }

 private:
  // A packet that was seen, once more, with some bytes changed.
  void repeat(Input& input) {
    if (seen_.empty()) return;
    CmNetwork::Packet packet = seen_[input.byte() % seen_.size()];
    for (int changes = input.byte() % 4; changes > 0; --changes) {
      const std::size_t at = input.word() % packet.bytes.size();
      packet.bytes[at] = input.byte();
    }
    send(std::move(packet));
  }

  // A packet that was seen, with another's identifiers, perhaps the other way round, from another.
  void forge(Input& input) {
    if (seen_.empty()) return;
    CmNetwork::Packet packet = seen_[input.byte() % seen_.size()];
    const CmNetwork::Packet& other = seen_[input.byte() % seen_.size()];
    const std::uint8_t how = input.byte();
    std::copy_n(other.bytes.begin() + kIdsAt, kIdsSize, packet.bytes.begin() + kIdsAt);
    if ((how & 1) != 0) {
      std::rotate(packet.bytes.begin() + kIdsAt, packet.bytes.begin() + kIdsAt + kIdsSize / 2,
                  packet.bytes.begin() + kIdsAt + kIdsSize);
    }
    if ((how & 2) != 0) packet.path = other.path;
    if ((how & 4) != 0) packet.path.source = *wire::IpAddress::parse("10.0.0.7");
    send(std::move(packet));
  }

  // To queue pair 1, with its Q_Key, whatever the MAD.
  void inject_raw(Input& input, bool to_server) {
    CmNetwork::Packet packet;
    const auto& [from, to] =
        to_server ? std::pair("10.0.0.2", "10.0.0.1") : std::pair("10.0.0.1", "10.0.0.2");
    packet.path = {.source = *wire::IpAddress::parse(from),
                   .destination = *wire::IpAddress::parse(to),
                   .source_port = 0xC000};
    packet.bytes = {0x64, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 1};
    const auto mad = input.bytes(input.byte());
    packet.bytes.insert(packet.bytes.end(), mad.begin(), mad.end());
    packet.bytes.resize(kMadAt + wire::kMadSize + wire::kIcrcSize);
    send(std::move(packet));
  }

  void send(CmNetwork::Packet packet) {
    network_.inject(std::move(packet));
    network_.run();
  }

  void pass_time(Input& input) {
    const std::uint8_t how = input.byte();
    network_.loses_all = (how & 1) != 0;
    network_.run(std::chrono::milliseconds(50) * how);
    network_.loses_all = false;
  }

  static void raw_command(Program& program, Input& input) {
    const std::uint8_t number = input.byte();
    const std::uint8_t id = input.byte();
    const auto given = input.bytes(input.byte());
    std::vector<std::uint8_t> bytes(given.begin(), given.end());
    // Addresses are put right: the harness lives in the same process.
    const std::size_t at = number == RDMA_USER_CM_CMD_CREATE_ID ? 8 : 0;
    const std::uint64_t address = scratch_address();
    const bool has_address = names_memory(number);
    if (has_address && bytes.size() < at + sizeof(address)) bytes.resize(at + sizeof(address));
    if (has_address) std::memcpy(bytes.data() + at, &address, sizeof(address));
    // And identifiers, as often as not.
    const std::uint32_t known = program.some_id(id);
    const std::size_t id_at = has_address ? 8 : 0;
    if ((id & 0x80) == 0 && bytes.size() >= id_at + sizeof(known) && at == 0) {
      std::memcpy(bytes.data() + id_at, &known, sizeof(known));
    }
    program.run(number, bytes, static_cast<std::uint16_t>(input.byte() * 4));
  }

  static bool names_memory(std::uint8_t number) {
    switch (number) {
      case RDMA_USER_CM_CMD_CREATE_ID:
      case RDMA_USER_CM_CMD_DESTROY_ID:
      case RDMA_USER_CM_CMD_BIND_IP:
      case RDMA_USER_CM_CMD_QUERY_ROUTE:
      case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      case RDMA_USER_CM_CMD_GET_EVENT:
      case RDMA_USER_CM_CMD_SET_OPTION:
      case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      case RDMA_USER_CM_CMD_LEAVE_MCAST:
      case RDMA_USER_CM_CMD_MIGRATE_ID:
      case RDMA_USER_CM_CMD_QUERY:
      case RDMA_USER_CM_CMD_JOIN_MCAST:
        return true;
      default:
        return false;
    }
  }

  void disturb(Program& program, std::uint8_t how) {
    CmHost& host = program.process().host();
    if (how % 4 == 0) return host.report_removal();
    if (how % 4 == 1) return host.report_link_address();
    host.access()->cm().handle_unreachable(
        network_.now(), *wire::IpAddress::parse(how % 8 < 4 ? "10.0.0.1" : "10.0.0.2"));
  }

  CmNetwork network_;
  std::vector<CmNetwork::Packet> seen_;
  Program server_{network_.server()};
  Program client_{network_.client()};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  World world;
  for (std::size_t step = 0; step < kMostSteps && !input.empty(); ++step) world.step(input);
  world.finish();
  return 0;
}
