#include "verbs/preload/private_descriptor.h"

#include <fcntl.h>

namespace urxe::verbs {
namespace {

constexpr int kLowestNumber = 500;

int move_up(int number) {
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
