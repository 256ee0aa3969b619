#include "tests/support/uverbs_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>

#include <sys/mman.h>

namespace urxe::test {
namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

void expect(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + std::to_string(result));
}

template <typename T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* const first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(value));
}

}  // namespace

// --- ioctls

Ioctl::Ioctl(std::uint16_t object, std::uint16_t method) {
  header_.object_id = object;
  header_.method_id = method;
}

Ioctl& Ioctl::add(std::uint16_t id, std::uint16_t length, std::uint64_t data) {
  ib_uverbs_attr attribute{};
  attribute.attr_id = id;
  attribute.len = length;
  attribute.flags = UVERBS_ATTR_F_MANDATORY;
  attribute.data = data;
  attributes_.push_back(attribute);
  return *this;
}

Ioctl& Ioctl::in(std::uint16_t id, const void* bytes, std::size_t size) {
  std::uint64_t data = address_of(bytes);
  if (size <= sizeof(data)) {
    data = 0;
    std::memcpy(&data, bytes, size);
  }
  return add(id, static_cast<std::uint16_t>(size), data);
}

Ioctl& Ioctl::out(std::uint16_t id, void* bytes, std::size_t size) {
  return add(id, static_cast<std::uint16_t>(size), address_of(bytes));
}

Ioctl& Ioctl::object(std::uint16_t id, std::int64_t handle) {
  return add(id, 0, static_cast<std::uint64_t>(handle));
}

int Ioctl::run(verbs::EmulatedFile& file) {
  header_.num_attrs = static_cast<std::uint16_t>(attributes_.size());
  if (header_.length == 0) {
    header_.length =
        static_cast<std::uint16_t>(sizeof(header_) + attributes_.size() * sizeof(ib_uverbs_attr));
  }
  std::vector<std::byte> bytes;
  append(bytes, header_);
  for (const ib_uverbs_attr& attribute : attributes_) append(bytes, attribute);
  const int result = file.ioctl(RDMA_VERBS_IOCTL, bytes.data());
  if (!attributes_.empty()) {
    std::memcpy(attributes_.data(), bytes.data() + sizeof(header_),
                attributes_.size() * sizeof(ib_uverbs_attr));
  }
  return result;
}

const ib_uverbs_attr& Ioctl::attribute(std::uint16_t id) const {
  return *std::find_if(attributes_.begin(), attributes_.end(),
                       [id](const ib_uverbs_attr& attribute) { return attribute.attr_id == id; });
}

// --- commands

UverbsClient::UverbsClient(verbs::DeviceNode& node, Front front) : front_(front) {
  auto opened = node.open(0);
  expect(opened ? 0 : opened.error(), "open");
  fd_ = opened->fd;
  file_ = opened->file;
}

UverbsClient::~UverbsClient() {
  for (const auto& [start, size] : mappings_) munmap(start, size);
  for (const int descriptor : descriptors_) ::close(descriptor);
  ::close(fd_);
}

int UverbsClient::wrapped(std::uint32_t command, const void* request, std::size_t request_size,
                          void* response, std::size_t response_size, Driver driver) {
  Ioctl ioctl(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
  ioctl.constant(UVERBS_ATTR_WRITE_CMD, command).in(UVERBS_ATTR_CORE_IN, request, request_size);
  if (response != nullptr) ioctl.out(UVERBS_ATTR_CORE_OUT, response, response_size);
  if (!driver.in.empty()) ioctl.in(UVERBS_ATTR_UHW_IN, driver.in.data(), driver.in.size());
  if (!driver.out.empty()) ioctl.out(UVERBS_ATTR_UHW_OUT, driver.out.data(), driver.out.size());
  return ioctl.run(*file_);
}

int UverbsClient::plain(std::uint32_t command, const void* request, std::size_t request_size,
                        void* response, std::size_t response_size, Driver driver) {
  if (front_ == Front::ioctl) {
    return wrapped(command, request, request_size, response, response_size, driver);
  }
  std::vector<std::byte> answer(response_size + driver.out.size());
  std::vector<std::byte> bytes;
  append(bytes, ib_uverbs_cmd_hdr{.command = command, .in_words = 0, .out_words = 0});
  const auto* const first = static_cast<const std::byte*>(request);
  bytes.insert(bytes.end(), first, first + request_size);
  bytes.insert(bytes.end(), driver.in.begin(), driver.in.end());
  const ib_uverbs_cmd_hdr header{.command = command,
                                 .in_words = static_cast<std::uint16_t>(bytes.size() / 4),
                                 .out_words = static_cast<std::uint16_t>(answer.size() / 4)};
  std::memcpy(bytes.data(), &header, sizeof(header));
  const std::uint64_t where = address_of(answer.data());
  if (response != nullptr) std::memcpy(bytes.data() + sizeof(header), &where, sizeof(where));
  const ssize_t result = file_->write(bytes.data(), bytes.size());
  if (response != nullptr) std::memcpy(response, answer.data(), response_size);
  std::copy_n(answer.begin() + static_cast<std::ptrdiff_t>(response_size), driver.out.size(),
              driver.out.begin());
  return result == static_cast<ssize_t>(bytes.size()) ? 0 : static_cast<int>(result);
}

int UverbsClient::extended(std::uint32_t command, const void* request, std::size_t request_size,
                           void* response, std::size_t response_size, Driver driver) {
  if (front_ == Front::ioctl) {
    return wrapped(command | IB_USER_VERBS_CMD_FLAG_EXTENDED, request, request_size, response,
                   response_size, driver);
  }
  const auto words = [](std::size_t size) { return static_cast<std::uint16_t>(size / 8); };
  std::vector<std::byte> answer(response_size + driver.out.size());
  std::vector<std::byte> bytes;
  append(bytes, ib_uverbs_cmd_hdr{.command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED,
                                  .in_words = words(request_size),
                                  .out_words = words(response_size)});
  append(bytes, ib_uverbs_ex_cmd_hdr{.response = address_of(answer.data()),
                                     .provider_in_words = words(driver.in.size()),
                                     .provider_out_words = words(driver.out.size()),
                                     .cmd_hdr_reserved = 0});
  const auto* const first = static_cast<const std::byte*>(request);
  bytes.insert(bytes.end(), first, first + request_size);
  bytes.insert(bytes.end(), driver.in.begin(), driver.in.end());
  const ssize_t result = file_->write(bytes.data(), bytes.size());
  std::memcpy(response, answer.data(), response_size);
  std::copy_n(answer.begin() + static_cast<std::ptrdiff_t>(response_size), driver.out.size(),
              driver.out.begin());
  return result == static_cast<ssize_t>(bytes.size()) ? 0 : static_cast<int>(result);
}

int UverbsClient::run_bytes(std::uint32_t command, std::span<const std::uint8_t> request,
                            std::size_t response_size, Driver driver) {
  std::vector<std::byte> room(response_size);
  void* const response = response_size > 0 ? room.data() : nullptr;
  if ((command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0) {
    return extended(command & ~IB_USER_VERBS_CMD_FLAG_EXTENDED, request.data(), request.size(),
                    response, response_size, driver);
  }
  return plain(command, request.data(), request.size(), response, response_size, driver);
}

// --- objects

int UverbsClient::open_context() {
  ib_uverbs_get_context_resp response{};
  expect(run(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context{}, &response), "GET_CONTEXT");
  descriptors_.push_back(static_cast<int>(response.async_fd));
  return descriptors_.back();
}

std::uint32_t UverbsClient::pd() {
  ib_uverbs_alloc_pd_resp response{};
  expect(run(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, &response), "ALLOC_PD");
  return response.pd_handle;
}

std::uint32_t UverbsClient::mr(std::uint32_t pd, void* start, std::size_t size,
                               std::uint32_t access, std::uint32_t* key) {
  ib_uverbs_reg_mr request{};
  request.start = request.hca_va = address_of(start);
  request.length = size;
  request.pd_handle = pd;
  request.access_flags = access;
  ib_uverbs_reg_mr_resp response{};
  expect(run(IB_USER_VERBS_CMD_REG_MR, request, &response), "REG_MR");
  if (key != nullptr) *key = response.lkey;
  return response.mr_handle;
}

int UverbsClient::channel() {
  ib_uverbs_create_comp_channel_resp response{};
  expect(run(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{}, &response),
         "CREATE_COMP_CHANNEL");
  descriptors_.push_back(static_cast<int>(response.fd));
  return descriptors_.back();
}

UverbsClient::Queue UverbsClient::cq(std::uint64_t user_handle, int channel, std::uint32_t cqe) {
  ib_uverbs_create_cq request{};
  request.user_handle = user_handle;
  request.cqe = cqe;
  request.comp_channel = channel;
  ib_uverbs_create_cq_resp response{};
  rxe_create_cq_resp driver{};
  expect(run(IB_USER_VERBS_CMD_CREATE_CQ, request, &response, driver_out(driver)), "CREATE_CQ");
  return {response.cq_handle, driver.mi};
}

UverbsClient::Queue UverbsClient::srq(std::uint32_t pd, std::uint64_t user_handle,
                                      std::uint32_t limit) {
  ib_uverbs_create_srq request{};
  request.user_handle = user_handle;
  request.pd_handle = pd;
  request.max_wr = 16;
  request.max_sge = 1;
  request.srq_limit = limit;
  ib_uverbs_create_srq_resp response{};
  rxe_create_srq_resp driver{};
  expect(run(IB_USER_VERBS_CMD_CREATE_SRQ, request, &response, driver_out(driver)), "CREATE_SRQ");
  return {response.srq_handle, driver.mi};
}

ib_uverbs_create_qp UverbsClient::usual_qp() {
  ib_uverbs_create_qp request{};
  request.max_send_wr = request.max_recv_wr = 16;
  request.max_send_sge = request.max_recv_sge = 1;
  request.qp_type = IB_UVERBS_QPT_RC;
  request.sq_sig_all = 1;
  return request;
}

UverbsClient::QueuePair UverbsClient::qp(std::uint32_t pd, std::uint32_t cq,
                                         std::uint64_t user_handle,
                                         const ib_uverbs_create_qp& adjust) {
  ib_uverbs_create_qp request{};
  std::memcpy(&request, &adjust, sizeof(request));
  request.user_handle = user_handle;
  request.pd_handle = pd;
  request.send_cq_handle = request.recv_cq_handle = cq;
  QueuePair made;
  ib_uverbs_create_qp_resp response{};
  expect(run(IB_USER_VERBS_CMD_CREATE_QP, request, &response, driver_out(made.mappings)),
         "CREATE_QP");
  made.handle = response.qp_handle;
  made.qpn = response.qpn;
  made.capabilities = {.max_send_wr = response.max_send_wr,
                       .max_recv_wr = response.max_recv_wr,
                       .max_send_sge = response.max_send_sge,
                       .max_recv_sge = response.max_recv_sge,
                       .max_inline_data = response.max_inline_data};
  return made;
}

int UverbsClient::modify(std::uint32_t qp, std::uint32_t mask, ib_uverbs_modify_qp attributes) {
  attributes.qp_handle = qp;
  attributes.attr_mask = mask;
  return run(IB_USER_VERBS_CMD_MODIFY_QP, attributes);
}

void UverbsClient::connect(const QueuePair& qp, std::uint32_t peer_qpn,
                           const std::uint8_t* peer_gid, int last_state) {
  ib_uverbs_modify_qp attributes{};
  attributes.port_num = 1;
  attributes.qp_access_flags = IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_READ;
  attributes.path_mtu = 3;
  attributes.dest_qp_num = peer_qpn;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.timeout = 14;
  attributes.retry_cnt = attributes.rnr_retry = 7;
  attributes.dest.is_global = 1;
  attributes.dest.port_num = 1;
  std::copy_n(peer_gid, sizeof(attributes.dest.dgid), attributes.dest.dgid);
  constexpr std::uint32_t kInit = 0x1 | 0x10 | 0x20 | 0x8;
  constexpr std::uint32_t kRtr = 0x1 | 0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000;
  constexpr std::uint32_t kRts = 0x1 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x2000;
  for (const auto& [state, mask] : {std::pair{1, kInit}, {2, kRtr}, {3, kRts}}) {
    if (state > last_state) break;
    attributes.qp_state = static_cast<std::uint8_t>(state);
    expect(modify(qp.handle, mask, attributes), "MODIFY_QP");
  }
}

ib_uverbs_query_qp_resp UverbsClient::query_qp(std::uint32_t qp) {
  ib_uverbs_query_qp request{};
  request.qp_handle = qp;
  ib_uverbs_query_qp_resp response{};
  expect(run(IB_USER_VERBS_CMD_QUERY_QP, request, &response), "QUERY_QP");
  return response;
}

ssize_t UverbsClient::ring(std::uint32_t qp) {
  ib_uverbs_post_send_resp response{};
  std::vector<std::byte> bytes;
  append(bytes, ib_uverbs_cmd_hdr{.command = IB_USER_VERBS_CMD_POST_SEND,
                                  .in_words = 8,
                                  .out_words = sizeof(response) / 4});
  append(bytes, address_of(&response));
  append(bytes, std::array<std::uint32_t, 4>{qp, 0, 0, 128});
  const ssize_t result = file_->write(bytes.data(), bytes.size());
  return result == static_cast<ssize_t>(bytes.size()) ? 0 : result;
}

int UverbsClient::request_notification(std::uint32_t cq, bool solicited_only) {
  return run(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
             ib_uverbs_req_notify_cq{.cq_handle = cq, .solicited_only = solicited_only});
}

rxe_queue_buf* UverbsClient::map(const mminfo& where) {
  void* const start = mmap(nullptr, where.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_,
                           static_cast<off_t>(where.offset));
  expect(start == MAP_FAILED ? errno : 0, "mmap");
  mappings_.emplace_back(start, where.size);
  return static_cast<rxe_queue_buf*>(start);
}

}  // namespace urxe::test
