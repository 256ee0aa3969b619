#include "verbs/preload/private_descriptor.h"

#include <fcntl.h>

namespace urxe::verbs {
namespace {

constexpr int kLowestNumber = 500;
// As many numbers as most programs may have. The kernel enlarges a process's table of descriptors
// as needed, and where threads share it waits for all processors (synchronize_rcu): hundreds of
// milliseconds on a busy machine, within which a peer gives up if a packet's thread is the one
// that waits. So the table is made large enough for all of ours with the first of them.
constexpr int kHighestNumber = 1023;

bool enlarge_table(int number) {
  const int highest = fcntl(number, F_DUPFD_CLOEXEC, kHighestNumber);
  return highest >= 0 && ::close(highest) == 0;
}

int move_up(int number) {
  [[maybe_unused]] static const bool large = enlarge_table(number);
  const int higher = fcntl(number, F_DUPFD_CLOEXEC, kLowestNumber);
  if (higher < 0) return number;  // RLIMIT_NOFILE is below
  ::close(number);
  return higher;
}

}  // namespace

PrivateDescriptor::PrivateDescriptor(int number) : number_(number < 0 ? -1 : move_up(number)) {
  if (this->number() >= 0) descriptors.insert_private(number_);
}

void PrivateDescriptor::close() {
  const int number = number_.exchange(-1);
  if (number < 0) return;
  descriptors.remove(number);
  ::close(number);
}

}  // namespace urxe::verbs
