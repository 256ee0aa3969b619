// The TCP connection between the two ends: parameters, and "I am ready".
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace checker {

class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  Channel(Channel&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  Channel& operator=(Channel&&) = delete;
  ~Channel();

  // Sends ours and returns the peer's. A peer that is gone, or silent for kPatience, is a failure.
  template <typename T>
  [[nodiscard]] T exchange(const T& ours) {
    static_assert(std::is_trivially_copyable_v<T>);
    send(&ours, sizeof ours);
    T theirs;
    receive(&theirs, sizeof theirs);
    return theirs;
  }

  // Returns when the peer is here, too. `where` tells both ends' failures apart.
  void meet(std::uint32_t where);

 private:
  void send(const void* data, std::size_t size) const;
  void receive(void* data, std::size_t size) const;

  int socket_;
};

// A socket that listens on all addresses.
int listen_on(std::uint16_t port);
Channel accept_from(int listener);
// Waits until the server listens, for kPatience at most.
Channel connect_to(const std::string& host, std::uint16_t port);

}  // namespace checker
