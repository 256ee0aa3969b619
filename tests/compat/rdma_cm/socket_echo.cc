// An ordinary program of the socket interface, which knows nothing of RDMA: librspreload.so turns
// its sockets into those of librdmacm. The client sends, the server sends the same back.
//   socket_echo server|client ADDRESS
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr std::uint16_t kPort = 7472;
constexpr std::size_t kSize = 8 * 1024 * 1024;
constexpr int kPatience = 30'000;  // milliseconds

int fail(const char* what) {
  std::perror(what);
  return 1;
}

bool wait_for(int socket, short events) {
  pollfd entry{.fd = socket, .events = events, .revents = 0};
  return poll(&entry, 1, kPatience) == 1;
}

bool send_all(int socket, const std::vector<std::uint8_t>& data) {
  for (std::size_t done = 0; done < data.size();) {
    if (!wait_for(socket, POLLOUT)) return false;
    const ssize_t sent = write(socket, data.data() + done, data.size() - done);
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, std::vector<std::uint8_t>& data) {
  for (std::size_t done = 0; done < data.size();) {
    if (!wait_for(socket, POLLIN)) return false;
    const ssize_t got = read(socket, data.data() + done, data.size() - done);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

int serve(int listener, const sockaddr_in& address) {
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener, 5) != 0) {
    return fail("listen");
  }
  const int connection = accept(listener, nullptr, nullptr);
  if (connection < 0) return fail("accept");
  std::vector<std::uint8_t> data(kSize);
  if (!receive_all(connection, data)) return fail("receive");
  if (!send_all(connection, data)) return fail("send");
  shutdown(connection, SHUT_RDWR);
  close(connection);
  return 0;
}

int call(int connection, const sockaddr_in& address) {
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return fail("connect");
  }
  std::vector<std::uint8_t> data(kSize);
  for (std::size_t at = 0; at < kSize; ++at)
    data[at] = static_cast<std::uint8_t>(at * 7 + at / 251);
  std::vector<std::uint8_t> echo(kSize);
  if (!send_all(connection, data)) return fail("send");
  if (!receive_all(connection, echo)) return fail("receive");
  close(connection);
  std::puts(echo == data ? "the same came back" : "something else came back");
  return echo == data ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  if (count != 3 || inet_pton(AF_INET, arguments[2], &address.sin_addr) != 1) return 2;
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  if (handle < 0) return fail("socket");
  const bool is_server = std::string_view(arguments[1]) == "server";
  const int status = is_server ? serve(handle, address) : call(handle, address);
  close(handle);
  return status;
}
