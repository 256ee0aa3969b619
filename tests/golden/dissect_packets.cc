// Dissects IP packets, one a line in hex on standard input, into blocks of the golden format on
// standard output. A packet that is refused gives the line `error: reason`.
#include <iostream>
#include <string>

#include "tests/golden/dissection.h"
#include "tests/support/frames.h"
#include "tests/support/hex.h"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto bytes = urxe::test::from_hex(line);
    if (!bytes) {
      std::cerr << "not hex: " << line << '\n';
      return 1;
    }
    const auto dissection = urxe::golden::dissect(*bytes);
    if (!dissection) {
      std::cout << "error: " << dissection.error() << "\n\n";
      continue;
    }
    for (const auto& field : *dissection) std::cout << field.key << ": " << field.value << '\n';
    std::cout << "icrc.right: " << (urxe::test::frame_is_right(*bytes) ? 1 : 0) << "\n\n";
  }
  return 0;
}
