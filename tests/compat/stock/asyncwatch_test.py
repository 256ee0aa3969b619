"""ibv_asyncwatch shows what happens to the port."""

import os
import time
import unittest

from tests.compat import nodes, pair
from tests.compat.stock import cases


class Asyncwatch(cases.InWorld):
    WORLD = os.environ.get("URXE_TEST_WORLD", "netns9000")

    def wait_for(self, text):
        deadline = time.monotonic() + 20 * nodes.SLOWNESS
        while text not in pair.read(self.output):
            self.assertLess(time.monotonic(), deadline, pair.read(self.output))
            time.sleep(0.02)

    def test_the_port_goes_down_and_up_with_its_interface(self):
        runner = self.runner(capture=False)
        self.output = f"{runner.folder}/001-watch.out"
        link = [*self.world.server.prefix, "ip", "link", "set", "eth0"]
        with runner.started(self.world.server, ["ibv_asyncwatch", "-d", "rxe0"], "watch"):
            self.wait_for("rxe0: async event FD")
            nodes.run(*link, "down")
            self.wait_for("IBV_EVENT_PORT_ERR")
            nodes.run(*link, "up")
            self.wait_for("IBV_EVENT_PORT_ACTIVE")


if __name__ == "__main__":
    unittest.main()
