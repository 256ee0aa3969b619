"""What the tests of stock programs share: a world, a user, a pair of programs, and what they sent.

The environment of the tests (CMakeLists.txt) chooses:
  URXE_TEST_WORLD   where: a key of nodes.worlds()
  URXE_TEST_USERS   as whom, with commas; without it, as everybody possible
  URXE_TEST_SLOW    1: all combinations, not a choice of them
"""

import contextlib
import os
import re
import tempfile
import time
import unittest

from tests.compat import capture_rules, captures, nodes, pair, scapy_icrc

SLOW = os.environ.get("URXE_TEST_SLOW", "") == "1"
MTUS = (256, 512, 1024, 2048, 4096)


def skip(reason):
    print(f"SKIPPED: {reason}", flush=True)
    raise unittest.SkipTest(reason)


class InWorld(unittest.TestCase):
    """Tests in the world that the environment names, made for the class."""

    WORLD = os.environ.get("URXE_TEST_WORLD", "two")

    @classmethod
    def setUpClass(cls):
        reason = nodes.why_no_world(cls.WORLD)
        if reason:
            skip(reason)
        cls.world = cls.enterClassContext(nodes.worlds()[cls.WORLD]())
        cls.folder = cls.enterClassContext(pair.folder())
        wanted = os.environ.get("URXE_TEST_USERS", "").split(",")
        cls.users = [user for user in nodes.users() if user in wanted or wanted == [""]]
        if not cls.users:
            skip(f"cannot run as {' or '.join(wanted)} here")

    def runner(self, user=None, **options):
        folder = tempfile.mkdtemp(prefix=self.id().rsplit(".", 1)[-1] + "-", dir=self.folder)
        os.chmod(folder, 0o777)
        return pair.Runner(self.world, user or self.users[-1], folder, **options)

    @property
    def mtus(self):
        return [mtu for mtu in MTUS if mtu <= self.world.mtu]

    def assert_both_work(self, both):
        for end in (both.server, both.client):
            if end.status != 0:
                self.fail(f"a program failed\n{both}")

    def assert_captures_are_good(self, both, mtu=None):
        """What was sent and received keeps the rules, at both ends. Returns what the client saw."""
        self.assertEqual(len(both.captures), 2, f"no capture\n{both}")
        for path in both.captures:
            packets = captures.read(path)
            self.assertTrue(packets, f"{path} is empty\n{both}")
            problems = list(captures.check_integrity(packets))
            problems += capture_rules.check(packets, mtu)
            problems += captures.tshark_complaints(path) or []
            problems += scapy_icrc.complaints(path)
            self.assertEqual(problems[:20], [], f"{len(problems)} problems in {path}\n{both}")
        return packets

    def talk(self, program, *arguments, runner=None, capture=True, mtu=None):
        """A program's server, and its client that is given the server's address; both work."""
        runner = runner or self.runner(capture=capture)
        port = nodes.free_port()
        command = [program, "-p", str(port), *map(str, arguments)]
        both = runner.both(command, command + [self.world.server.address], port)
        self.assert_both_work(both)
        if runner.capture:
            self.assert_captures_are_good(both, mtu)
        return both


class Paused:
    """Two checkers that are connected and at rest; `both` holds their ends afterwards."""

    def __init__(self, processes, outputs):
        self.processes = processes
        self.outputs = outputs
        self.both = None

    def queue_pairs(self):
        """The numbers of each one's queue pairs."""
        return [[int(number, 16) for number in re.findall(r"(?m)^QP (0x\w+)$", pair.read(path))]
                for path in self.outputs]


@contextlib.contextmanager
def paused_checkers(test, arguments=(), kind=None):
    """Two checkers that have done everything once, and will do it again after the `with` block."""
    runner = test.runner(capture=False)
    world = test.world
    build, _ = nodes.product()
    port = nodes.free_port()
    fifo = os.path.join(runner.folder, f"fifo-{port}")
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    gid = world.server.gids[kind or sorted(world.server.gids)[-1]]
    server = [f"{build}/tests/verbs_checker", "--port", str(port), "--gid", str(gid), "--brief",
              "--mtu", str(min(1024, world.mtu)), "--pause", fifo, *arguments]
    with runner.started(world.server, server, "server") as (first, end_server), \
            runner.started(world.client, server + [world.server.address], "client") as (
                second, end_client):
        outputs = [os.path.join(runner.folder, f"{number:03}-{name}.out")
                   for number, name in ((runner.number - 1, "server"), (runner.number, "client"))]
        deadline = time.monotonic() + runner.patience
        while not all("pause\n" in pair.read(path) for path in outputs):
            ended = [end for end in (first, second) if end.poll() is not None]
            if ended or time.monotonic() > deadline:
                test.fail("\n".join(map(pair.read, outputs)))
            time.sleep(0.02)
        paused = Paused((first, second), outputs)
        yield paused
        writer = os.open(fifo, os.O_RDWR)  # does not wait for a reader
        paused.both = pair.Both(end_server(), end_client())
        os.close(writer)
