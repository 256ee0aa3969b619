"""An interface whose MTU becomes too small for its connections."""

import os
import time
import unittest

from tests.compat import nodes, pair
from tests.compat.stock import cases


class Mtu(cases.InWorld):
    WORLD = os.environ.get("URXE_TEST_WORLD", "netns9000")

    def wait_for_traffic(self, path):
        """Until the capture of an end grows."""
        deadline = time.monotonic() + 20 * nodes.SLOWNESS
        while not os.path.exists(path) or os.path.getsize(path) < 1 << 20:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_a_connection_that_is_too_large_for_its_interface_ends_and_is_told_why(self):
        runner = self.runner()
        port = nodes.free_port()
        # Only the client sends, so that it always waits for an acknowledgement.
        command = ["ib_write_bw", "-p", str(port), "-d", "rxe0", "-F", "-x",
                   str(self.world.server.gids["v4"]), "-m", "4096", "-n", "5000000"]
        node = self.world.client
        with runner.started(self.world.server, command, "server") as (server, _):
            self.assertTrue(pair.wait_for_listener(server, port, runner.patience))
            with runner.started(node, [*command, self.world.server.address], "client") as (_, end):
                self.wait_for_traffic(f"{runner.folder}/002-client.pcap")
                nodes.run(*node.prefix, "ip", "link", "set", "eth0", "mtu", "1500")
                finished = end()
        self.assertNotEqual(finished.status, 0, finished)
        self.assertIn("Failed status 12", finished.output)  # IBV_WC_RETRY_EXC_ERR
        self.assertIn("the interface's MTU is too small for this path MTU", finished.log)
        self.assertIn("the largest path MTU is 1024 now", finished.log)


if __name__ == "__main__":
    unittest.main()
