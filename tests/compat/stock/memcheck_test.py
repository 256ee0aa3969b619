"""Stock programs and the checkers under valgrind: no error has a frame of ours."""

import glob
import os
import shutil
import unittest
import xml.etree.ElementTree

from tests.compat import nodes
from tests.compat.stock import cases

PATIENCE = 400  # seconds; valgrind runs one thread at a time, and slowly


def is_of_ours(frame):
    """Whether this is the library's code, and not an entry point that passes a call on."""
    function = frame.findtext("fn", "")
    return (os.path.basename(frame.findtext("obj", "")) == "liburxe.so"
            and function.startswith("urxe::") and not function.startswith("urxe::verbs::libc::"))


def errors_of_ours(path):
    """Sentences about the errors in a file of valgrind's in whose stack the library is."""
    for error in xml.etree.ElementTree.parse(path).getroot().iter("error"):
        frames = list(error.iter("frame"))
        # To ask the kernel is how the registration of memory that is not mapped is refused.
        if "msync(start)" in error.findtext("what", ""):
            continue
        if any(map(is_of_ours, frames)):
            stack = " < ".join(f"{frame.findtext('fn', '?')}:{frame.findtext('line', '')}"
                               for frame in frames[:12])
            yield f"{error.findtext('kind')}: {error.findtext('what', '')} {stack}"


class Memcheck(cases.InWorld):
    def setUp(self):
        if nodes.SANITIZE:
            cases.skip("valgrind and sanitizers do not go together")
        if shutil.which("valgrind") is None:
            cases.skip("valgrind is missing; tools/setup --test installs it")

    def memcheck(self, program, *arguments, server=True, port_option="-p"):
        runner = self.runner(capture=True, patience=PATIENCE)
        runner.wrapper = ["valgrind", "-q", "--child-silent-after-fork=yes", "--num-callers=40",
                          "--xml=yes", f"--xml-file={runner.folder}/valgrind.%p.xml"]
        port = nodes.free_port()
        command = [program, *map(str, arguments)]
        if server:
            command += [port_option, str(port)]
            both = runner.both(command, command + [self.world.server.address], port)
            self.assert_both_work(both)
        else:
            finished = runner.alone(command)
            self.assertEqual(finished.status, 0, finished)
        files = glob.glob(f"{runner.folder}/valgrind.*.xml")
        self.assertEqual(len(files), 2 if server else 1)
        problems = [problem for path in files for problem in errors_of_ours(path)]
        self.assertEqual(problems[:10], [], f"{len(problems)} errors")

    def test_pingpong(self):
        for flags in (["-c"], ["-e", "-N"]):
            with self.subTest(flags=flags):
                self.memcheck("ibv_rc_pingpong", "-d", "rxe0", "-g", 0, "-n", 20, "-s", 5000,
                              *flags)

    def test_perftest(self):
        self.memcheck("ib_read_bw", "-d", "rxe0", "-F", "-n", 5, "-s", 5000, "-x", 0)

    def test_the_checker(self):
        build, _ = nodes.product()
        for way in ([], ["--extended", "--events"], ["--odp"], ["--transport", "ud"]):
            with self.subTest(way=way):
                self.memcheck(f"{build}/tests/verbs_checker", "--brief", "--gid", 0, *way,
                              port_option="--port")

    def test_bad_input(self):
        build, _ = nodes.product()
        self.memcheck(f"{build}/tests/verbs_bad_input", server=False)


if __name__ == "__main__":
    unittest.main()
