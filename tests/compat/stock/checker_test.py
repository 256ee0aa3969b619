"""Our own checker of the data (tests/compat/checker), in all its ways."""

import itertools
import unittest

from tests.compat import nodes
from tests.compat.stock import cases

WAYS = ([], ["--extended"], ["--events"], ["--extended", "--events"])


class Data(cases.InWorld):
    def check(self, *arguments, capture=True, kind=None, user=None, mtu=None):
        gids = self.world.server.gids
        gid = gids[kind or sorted(gids)[-1]]
        mtu = mtu or min(1024, self.world.mtu)
        port = nodes.free_port()
        build, _ = nodes.product()
        command = [f"{build}/tests/verbs_checker", "--port", str(port), "--gid", str(gid), "--mtu",
                   str(mtu), *map(str, arguments)]
        runner = self.runner(user, capture=capture)
        both = runner.both(command, command + [self.world.server.address], port)
        self.assert_both_work(both)
        self.assertIn("cases", both.client.output)
        if capture:
            self.assert_captures_are_good(both)

    def test_rc_in_every_way(self):
        for user, way in itertools.product(self.users, WAYS):
            with self.subTest(user=user, way=way):
                self.check(*way, user=user, capture=way == [])

    def test_rc_with_every_path_mtu(self):
        for mtu, seed in itertools.product(self.mtus, range(1, 6 if cases.SLOW else 2)):
            with self.subTest(mtu=mtu, seed=seed):
                self.check("--mtu", mtu, "--brief", "--seed", seed, mtu=mtu)

    def test_every_gid(self):
        for kind in self.world.server.gids:
            with self.subTest(gid=kind):
                self.check("--brief", "--seed", 7, kind=kind)

    def test_shared_receive_queue(self):
        for transport in ("rc", "uc", "ud"):
            with self.subTest(transport=transport):
                self.check("--srq", "--brief" if not cases.SLOW else "--events", "--transport",
                           transport)

    def test_on_demand_paging(self):
        if "thread" in nodes.SANITIZE:
            cases.skip("ThreadSanitizer does not survive a fault guard's jump")
        for transport in ("rc", "uc", "ud"):
            with self.subTest(transport=transport):
                self.check("--odp", "--brief", "--transport", transport)

    def test_threads_and_queue_pairs(self):
        for way in WAYS if cases.SLOW else WAYS[:1]:
            with self.subTest(way=way):
                self.check("--threads", 4, "--qps", 4, "--seed", 3, *way, capture=False)

    def test_uc(self):
        for way in WAYS if cases.SLOW else WAYS[:2]:
            with self.subTest(way=way):
                self.check("--transport", "uc", *way)

    def test_ud(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.check("--transport", "ud", *way)


if __name__ == "__main__":
    unittest.main()
