"""The check by symbols finds a planted call into the world, and into another room."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.tidy import symbols  # noqa: E402

CXX = os.environ.get("CXX", "c++")
CLEAN = """
#include <string>
#include <vector>
#include <stdexcept>
std::vector<std::string> clean(int n) {
  if (n < 0) throw std::out_of_range("n");
  return std::vector<std::string>(n, std::to_string(n));
}
"""
# One call, and what must be told of it.
PLANTED = {
    "#include <ctime>\nlong f() { return std::time(nullptr); }": "harmful: time",
    "#include <chrono>\nauto f() { return std::chrono::steady_clock::now(); }": "steady_clock::now",
    "#include <sys/socket.h>\nint f() { return socket(1, 2, 3); }": "harmful: socket",
    "#include <thread>\nvoid f() { std::thread([] {}).join(); }": "std::thread",
    "#include <mutex>\nstd::mutex m;\nvoid f() { m.lock(); }": "pthread_mutex_lock",
    "#include <random>\nunsigned f() { return std::random_device()(); }": "random_device",
    "#include <iostream>\nvoid f() { std::cout << 1; }": "std::cout",
    "#include <cstdlib>\nchar* f() { return std::getenv(\"HOME\"); }": "harmful: getenv",
    "namespace urxe::net { int other(); }\nint f() { return urxe::net::other(); }":
        "undefined: urxe::net::other()",
}


class SymbolsTest(unittest.TestCase):
    def problems(self, text):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "room.cc"
            objects, archive = source.with_suffix(".o"), source.with_suffix(".a")
            source.write_text(text)
            subprocess.run([CXX, "-std=c++20", "-fPIC", "-O1", "-c", source, "-o", objects],
                           check=True)
            subprocess.run(["ar", "crs", archive, objects], check=True)
            return symbols.check(CXX, [str(archive)], [])

    def test_a_clean_room_passes(self):
        self.assertEqual(self.problems(CLEAN), [])

    def test_every_planted_call_is_found(self):
        for text, told in PLANTED.items():
            with self.subTest(text):
                self.assertIn(told, "\n".join(self.problems(text)))


if __name__ == "__main__":
    unittest.main()
