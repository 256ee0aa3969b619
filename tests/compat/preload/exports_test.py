"""What the library shows to other objects in a program, and what it asks of them."""

import pathlib
import re
import subprocess
import unittest

from tests.compat.preload import preloading

LIST = pathlib.Path(__file__).with_name("exported_symbols.txt")


def lines(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


class Exports(unittest.TestCase):
    def test_nothing_is_exported_but_what_is_on_the_list(self):
        exported = {line.split()[-1] for line in lines("nm", "-D", "--defined-only",
                                                       preloading.LIBRARY)}
        expected = {line for line in LIST.read_text().splitlines()
                    if line and not line.startswith("#")}
        self.assertEqual(exported, expected)

    def test_the_c_library_and_the_crc_are_all_that_it_needs(self):
        if preloading.SANITIZE:
            return  # then the sanitizers' runtime libraries come in
        needed = {match[1] for line in lines("readelf", "-d", preloading.LIBRARY)
                  if (match := re.search(r"\(NEEDED\).*\[(.*)\]", line))}
        # Debian has no static libisal; it needs nothing but the C library itself.
        self.assertLessEqual(needed, {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2",
                                      "ld-linux-aarch64.so.1", "libisal.so.2"})

    def test_it_keeps_no_list_of_where_it_was_built(self):
        self.assertFalse([line for line in lines("readelf", "-d", preloading.LIBRARY)
                          if "RPATH" in line or "RUNPATH" in line])


if __name__ == "__main__":
    unittest.main()
