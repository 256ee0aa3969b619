"""A device that nobody uses costs nothing, and a peer that dies is noticed."""

import signal
import time
import unittest

from tests.compat import nodes, observe, pair
from tests.compat.stock import cases

IDLE_SECONDS = 6
# ib_write_bw: timeout 14 is 67 ms, and 7 retries; a timeout may last up to four times as long.
RETRY_SECONDS = 4 * 0.067 * 8


class Idle(cases.InWorld):
    def test_an_idle_device_with_queue_pairs_causes_no_wake_up(self):
        for way in ([], ["--events"]):
            with self.subTest(way=way):
                self.check_idleness(way)

    def check_idleness(self, way):
        with cases.paused_checkers(self, way) as ends:
            # What was polled lately is looked after for a while.
            before = [observe.costs(process.pid) for process in ends.processes]
            settled = False
            for _ in range(10):
                time.sleep(0.5)
                now = [observe.costs(process.pid) for process in ends.processes]
                settled = now == before
                before = now
                if settled:
                    break
            self.assertTrue(settled, f"never at rest: {before}")
            time.sleep(IDLE_SECONDS)
            after = [observe.costs(process.pid) for process in ends.processes]
            self.assertEqual(after, before)
            self.assertTrue(all(len(threads) > 2 for threads in after), "no progress thread?")
        self.assert_both_work(ends.both)


class DeadPeer(cases.InWorld):
    @staticmethod
    def sends_much(pid):
        """At first the process may still be on its way into its namespace."""
        before = observe.datagrams_sent(pid)
        time.sleep(0.1)
        return observe.datagrams_sent(pid) > before + 50

    def test_work_towards_a_killed_peer_fails_within_its_retry_time(self):
        runner = self.runner(capture=False)
        port = nodes.free_port()
        server = ["ib_write_bw", "-p", str(port), "-d", "rxe0", "-F", "-s", "4096", "-n", "5000000"]
        client = server + [self.world.server.address]
        with runner.started(self.world.server, server, "server") as (victim, _):
            self.assertTrue(pair.wait_for_listener(victim, port, 30 * nodes.SLOWNESS))
            with runner.started(self.world.client, client, "client") as (survivor, finish):
                observe.wait_until(lambda: self.sends_much(survivor.pid), 60, "traffic")
                victim.send_signal(signal.SIGKILL)
                killed = time.monotonic()
                finished = finish()
                seconds = time.monotonic() - killed
        self.assertNotEqual(finished.status, 0, finished)
        self.assertIn("12", finished.output, finished)  # IBV_WC_RETRY_EXC_ERR
        self.assertIn("did not answer", finished.log, finished)
        self.assertLess(seconds, (RETRY_SECONDS + 3) * nodes.SLOWNESS, finished)


if __name__ == "__main__":
    unittest.main()
