// Writes the golden files anew: write_golden DIRECTORY. Read what git says has changed before you
// keep it: a change here is a change of what goes over the wire.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/golden/samples.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_golden DIRECTORY\n";
    return 2;
  }
  for (const urxe::wire::OpcodeInfo& info : urxe::wire::all_opcodes()) {
    const std::filesystem::path path =
        std::filesystem::path(argv[1]) / urxe::golden::file_name(info);
    std::ofstream file(path);
    file << urxe::golden::file_text(info);
    if (!file.flush()) {
      std::cerr << "cannot write " << path << '\n';
      return 1;
    }
  }
  return 0;
}
