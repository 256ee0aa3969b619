"""What the tests of stock programs share: a world, a user, a pair of programs, and what they sent.

The environment of the tests (CMakeLists.txt) chooses:
  URXE_TEST_WORLD   where: a key of nodes.worlds()
  URXE_TEST_USERS   as whom, with commas; without it, as everybody possible
  URXE_TEST_SLOW    1: all combinations, not a choice of them
"""

import os
import unittest

from tests.compat import capture_rules, captures, nodes, pair

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
        folder = os.path.join(self.folder, f"{self.id().rsplit('.', 1)[-1]}-{id(options):x}")
        os.makedirs(folder, exist_ok=True)
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
