"""libibverbs' example programs, over every kind of GID."""

import itertools
import unittest

from tests.compat.stock import cases


class Pingpong(cases.InWorld):
    def talk_by(self, program, kind, *arguments, **options):
        return self.talk(program, "-d", "rxe0", "-g", self.world.server.gids[kind], *arguments,
                         **options)

    def kinds(self):
        return sorted(self.world.server.gids)

    def test_rc_over_every_gid_checks_its_data(self):
        for user, kind in itertools.product(self.users, self.kinds()):
            with self.subTest(user=user, gid=kind):
                self.talk_by("ibv_rc_pingpong", kind, "-n", 50, "-c", runner=self.runner(user))

    def test_rc_with_every_path_mtu(self):
        for mtu in self.mtus:
            with self.subTest(mtu=mtu):
                self.talk_by("ibv_rc_pingpong", self.kinds()[0], "-n", 20, "-c", "-m", mtu,
                             "-s", 3 * mtu + 1, mtu=mtu)

    def test_rc_with_many_sizes(self):
        sizes = (1, 2, 3, 1023, 1024, 1025, 65537, 1 << 20) if cases.SLOW else (1, 1025, 1 << 20)
        for size in sizes:
            with self.subTest(size=size):
                self.talk_by("ibv_rc_pingpong", self.kinds()[0], "-n", 10, "-c", "-s", size,
                             "-m", min(4096, self.world.mtu))

    def test_rc_with_events_and_the_extended_api(self):
        for flags in (["-e"], ["-N"], ["-e", "-N", "-c"]):
            with self.subTest(flags=flags):
                self.talk_by("ibv_rc_pingpong", self.kinds()[-1], "-n", 50, *flags)

    def test_all_combinations(self):
        if not cases.SLOW:
            return
        for user, kind, mtu, size, flags in itertools.product(
                self.users, self.kinds(), self.mtus, (1, 4096, 1 << 20),
                ((), ("-e",), ("-N",), ("-e", "-N"))):
            with self.subTest(user=user, gid=kind, mtu=mtu, size=size, flags=flags):
                self.talk_by("ibv_rc_pingpong", kind, "-n", 5, "-m", mtu, "-s", size, "-c", *flags,
                             runner=self.runner(user, capture=size < 1 << 20))

    def test_on_demand_paging(self):
        for flags in (["-o"], ["-o", "-O"], ["-o", "-P"], ["-o", "-O", "-P"], ["-o", "-e", "-N"]):
            with self.subTest(flags=flags):
                self.talk_by("ibv_rc_pingpong", self.kinds()[0], "-n", 20, "-c", *flags)
        for flags in (["-o"], ["-o", "-e"]):
            with self.subTest(flags=flags):
                self.talk_by("ibv_srq_pingpong", self.kinds()[0], "-n", 20, "-q", 4, "-c", *flags)

    def test_service_levels_and_short_queues(self):
        for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong"):
            with self.subTest(program=program):
                self.talk_by(program, self.kinds()[0], "-n", 50, "-s", 1000, "-l", 3, "-r", 10,
                             "-c")

    def test_what_the_device_has_not_is_refused_and_said(self):
        for program, flag, sentence in (
                ("ibv_rc_pingpong", ["-t"], "The device isn't completion timestamp capable"),
                ("ibv_rc_pingpong", ["-j"], "Device doesn't support dm allocation"),
                ("ibv_xsrq_pingpong", [], "Couldn't Open the XRC Domain 95")):
            with self.subTest(program=program, flag=flag):
                gid = str(self.world.server.gids[self.kinds()[0]])
                finished = self.runner(capture=False).alone(
                    [program, "-d", "rxe0", "-g", gid, *flag])
                self.assertEqual(finished.status, 1, finished)
                self.assertIn(sentence, finished.output)

    def test_uc(self):
        self.talk_by("ibv_uc_pingpong", self.kinds()[0], "-n", 50, "-s", 2000, "-m", 1024, "-c")
        self.talk_by("ibv_uc_pingpong", self.kinds()[0], "-n", 50, "-s", 2000, "-m", 512, "-e")

    def test_ud(self):
        self.talk_by("ibv_ud_pingpong", self.kinds()[0], "-n", 50, "-s", 1000, "-c")
        self.talk_by("ibv_ud_pingpong", self.kinds()[0], "-n", 50, "-s", 1000, "-e")

    def test_srq(self):
        self.talk_by("ibv_srq_pingpong", self.kinds()[0], "-n", 200, "-q", 4, "-s", 1000, "-c")
        self.talk_by("ibv_srq_pingpong", self.kinds()[0], "-n", 200, "-q", 16, "-e")


if __name__ == "__main__":
    unittest.main()
