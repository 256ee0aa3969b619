"""rdma-core's own tests (pyverbs) on the emulated device, by both of the kernel's command ABIs."""

import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# Where Debian's rdma-core puts them, partly compressed.
SOURCES = pathlib.Path("/usr/share/doc/rdma-core/tests")
MODULES = ("addr", "atomic", "cq", "cq_events", "cqex", "device", "fork", "mr", "odp",
           "parent_domain", "pd", "qp", "qpex", "relaxed_ordering", "shared_pd")
PATIENCE = 120  # seconds for a module

# What fails, and why. An entry that does not fail any more must go.
DEVIATIONS = {}
# By write() libibverbs reads GIDs from sysfs, where unused entries are empty files.
DEVIATIONS_BY_WRITE = {
    "test_device.DeviceTest.test_query_gid_table": "docs/limitations.md: types of an unused GID",
    "test_device.DeviceTest.test_query_gid_ex_bad_flow":
        "docs/limitations.md: types of an unused GID",
}

# The tests' own runner insists on taking the command line.
RUNNER = """
import sys, unittest
folder, module = sys.argv[1:]
sys.path[:0] = [folder, folder + "/tests"]
sys.argv = ["runner", "--dev", "rxe0"]
from args_parser import parser
parser.parse_args()
unittest.main(module=None, argv=["runner", "-v", "tests.test_" + module])
"""


def unpack(folder):
    """Copies the tests; those of a vendor's own features stay away, with what they import."""
    target = pathlib.Path(folder) / "tests"
    target.mkdir()
    for source in SOURCES.iterdir():
        if source.suffix == ".gz":
            (target / source.stem).write_bytes(gzip.decompress(source.read_bytes()))
        elif source.suffix == ".py":
            (target / source.name).write_bytes(source.read_bytes())


def run(folder, module, settings):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("URXE_")}
    environment |= {"LD_PRELOAD": os.environ["URXE_TEST_PRELOAD"], "URXE_DEVICES": "rxe0=lo",
                    "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", **settings}
    done = subprocess.run([sys.executable, "-c", RUNNER, folder, module], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE, check=False)
    ran = re.search(r"^Ran (\d+) test", done.stdout, re.MULTILINE)
    failed = set(re.findall(r"^(?:FAIL|ERROR): \w+ \(tests\.([\w.]+)\)", done.stdout, re.MULTILINE))
    return int(ran.group(1)) if ran else 0, failed, done.stdout


class Pyverbs(unittest.TestCase):
    def check(self, settings, deviations):
        if not SOURCES.is_dir():
            print(f"SKIPPED: {SOURCES} is not there (package rdma-core)")
            return
        failed = set()
        with tempfile.TemporaryDirectory() as folder:
            unpack(folder)
            for module in MODULES:
                with self.subTest(module=module):
                    count, failures, output = run(folder, module, settings)
                    self.assertGreater(count, 0, output)
                    self.assertLessEqual(failures, deviations.keys(), output)
                    failed |= failures
        self.assertEqual(failed, deviations.keys(), "deviations that are none any more")

    def test_programs_find_by_ioctl_what_they_find_on_rxe(self):
        self.check({}, DEVIATIONS)

    def test_programs_find_by_write_what_they_find_on_rxe(self):
        self.check({"URXE_UVERBS_ABI": "write"}, DEVIATIONS | DEVIATIONS_BY_WRITE)


if __name__ == "__main__":
    unittest.main()
