#include "emulator/types.h"

namespace urxe::emulator {

std::string_view to_string(QpType type) {
  switch (type) {
    case QpType::gsi:
      return "GSI";
    case QpType::rc:
      return "RC";
    case QpType::uc:
      return "UC";
    case QpType::ud:
      return "UD";
  }
  return "?";
}

std::string_view to_string(QpState state) {
  switch (state) {
    case QpState::reset:
      return "RESET";
    case QpState::init:
      return "INIT";
    case QpState::ready_to_receive:
      return "RTR";
    case QpState::ready_to_send:
      return "RTS";
    case QpState::send_queue_drain:
      return "SQD";
    case QpState::send_queue_error:
      return "SQE";
    case QpState::error:
      return "ERR";
  }
  return "?";
}

std::string_view to_string(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::success:
      return "success";
    case CompletionStatus::local_length_error:
      return "local length error";
    case CompletionStatus::local_qp_operation_error:
      return "local QP operation error";
    case CompletionStatus::local_protection_error:
      return "local protection error";
    case CompletionStatus::flushed:
      return "work request flushed";
    case CompletionStatus::window_bind_error:
      return "memory window bind error";
    case CompletionStatus::bad_response:
      return "bad response";
    case CompletionStatus::local_access_error:
      return "local access error";
    case CompletionStatus::remote_invalid_request:
      return "remote invalid request";
    case CompletionStatus::remote_access_error:
      return "remote access error";
    case CompletionStatus::remote_operational_error:
      return "remote operational error";
    case CompletionStatus::retry_exceeded:
      return "transport retry counter exceeded";
    case CompletionStatus::rnr_retry_exceeded:
      return "RNR retry counter exceeded";
  }
  return "?";
}

std::string_view to_string(WorkOpcode opcode) {
  switch (opcode) {
    case WorkOpcode::rdma_write:
      return "RDMA_WRITE";
    case WorkOpcode::rdma_write_with_immediate:
      return "RDMA_WRITE_WITH_IMM";
    case WorkOpcode::send:
      return "SEND";
    case WorkOpcode::send_with_immediate:
      return "SEND_WITH_IMM";
    case WorkOpcode::rdma_read:
      return "RDMA_READ";
    case WorkOpcode::compare_swap:
      return "ATOMIC_CMP_AND_SWP";
    case WorkOpcode::fetch_add:
      return "ATOMIC_FETCH_AND_ADD";
    case WorkOpcode::local_invalidate:
      return "LOCAL_INV";
    case WorkOpcode::bind_window:
      return "BIND_MW";
    case WorkOpcode::send_with_invalidate:
      return "SEND_WITH_INV";
    case WorkOpcode::flush:
      return "FLUSH";
    case WorkOpcode::atomic_write:
      return "ATOMIC_WRITE";
  }
  return "?";
}

}  // namespace urxe::emulator
