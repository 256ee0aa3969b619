// A queue pair in any state, with a peer, as a program has them by commands and rings.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "emulator/qp_attributes.h"
#include "tests/unit/verbs/uverbs_pair.h"

namespace urxe::test {

// The subject is in the state that was asked for; the peer is in RTS, connected to the subject, and
// has posted receives. Both have a window of type 2 that is not bound.
class QpWorld {
 public:
  static constexpr std::uint32_t kQKey = 0x1234;
  static constexpr std::uint64_t kRequest = 77;  // wr_id of what is judged

  struct End {
    UverbsClient::QueuePair qp;
    UverbsClient::Queue cq;
    rxe_queue_buf* sends = nullptr;
    rxe_queue_buf* receives = nullptr;
    rxe_queue_buf* completions = nullptr;
    std::uint32_t window = 0;  // its key
  };

  QpWorld(emulator::QpType type, emulator::QpState state);

  // MODIFY_QP of the subject: 0 or a negative errno. Every attribute has a value that makes sense.
  int modify(emulator::AttributeMask mask, emulator::QpState to);
  // Takes it from RESET to a state. False: no queue pair of this type comes into it.
  bool bring(emulator::QpState state);
  [[nodiscard]] emulator::QpState state();
  // A fresh subject in RESET.
  void replace_subject();

  // Posts one request to `from`, about the memory and the window of `to`, and rings: 0 or a
  // negative errno.
  int post(End& from, End& to, std::uint32_t opcode);
  // Binds the end's window to its memory.
  void bind(End& end);
  void post_receive(End& end);
  // Lets everything come to rest; what became of the requests with kRequest of this end.
  std::optional<emulator::CompletionStatus> outcome(End& end);

  [[nodiscard]] End& subject() { return subject_; }
  [[nodiscard]] End& peer() { return peer_; }
  [[nodiscard]] UverbsClient& client() { return client_; }
  [[nodiscard]] std::uint32_t pd() const { return pd_; }

 private:
  End make_end();
  void make_window(End& end);
  void connect(const End& end, const End& to, emulator::QpState last);
  [[nodiscard]] ib_uverbs_modify_qp attributes(std::uint32_t peer_qpn) const;
  void fill(rxe_send_wqe& wqe, std::uint32_t opcode, const End& from, const End& to) const;
  int put(End& end, const rxe_send_wqe& wqe);

  emulator::QpType type_;
  UverbsSetup setup_;
  UverbsClient client_{setup_.node, Front::write};
  std::array<std::uint8_t, 4096> memory_{};
  std::uint32_t pd_ = 0;
  std::uint32_t key_ = 0;
  End subject_;
  End peer_;
};

}  // namespace urxe::test
