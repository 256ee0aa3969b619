// Checks the data of every kind of message between two processes: a server, and a client that is
// given the server's address. It knows nothing but libibverbs. Status 0: all was right.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/compat/checker/check.h"
#include "tests/compat/checker/session.h"

namespace checker {
namespace {

void agree(Channel& channel, const Options& options) {
  struct Contract {
    char text[200];
  } ours{};
  std::snprintf(ours.text, sizeof ours.text, "%s", options.contract().c_str());
  const Contract theirs = channel.exchange(ours);
  if (std::string(ours.text) != theirs.text)
    fail("the peer was started with: %.*s", static_cast<int>(sizeof theirs.text), theirs.text);
}

std::size_t run_thread(const Device& device, Options options, Channel channel) {
  agree(channel, options);
  Session session(device, options, std::move(channel));
  session.run();
  return session.cases();
}

int run(const Options& options) {
  const Device device(options);
  const int listener = options.is_server() ? listen_on(options.port) : -1;
  std::atomic<std::size_t> cases = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < options.threads; ++i) {
    // Which of the peer's threads this one talks to is open, so all have the same seed.
    Channel channel =
        options.is_server() ? accept_from(listener) : connect_to(options.host, options.port);
    threads.emplace_back([&, channel = std::move(channel)]() mutable {
      cases += run_thread(device, options, std::move(channel));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu cases, %s\n", cases.load(), options.contract().c_str());
  return 0;
}

}  // namespace
}  // namespace checker

int main(int argc, char** argv) { return checker::run(checker::read_options(argc, argv)); }
