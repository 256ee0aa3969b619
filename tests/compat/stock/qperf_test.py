"""What of qperf cannot work on RoCE. It has no option for a GID: only by rdma_cm (-cm 1), which it
uses for RC, does it set the GRH that RoCE needs; those tests are in tests/compat/rdma_cm."""

import re
import unittest

from tests.compat import nodes, pair
from tests.compat.stock import cases

WITHOUT_GRH = ("rc_lat", "uc_bw", "uc_lat", "uc_rdma_write_lat", "ud_bw", "ud_lat")


class Qperf(cases.InWorld):
    def setUp(self):
        self.the_runner = self.runner(capture=False)
        self.port = nodes.free_port()
        server = self.the_runner.started(self.world.server, ["qperf", "-lp", str(self.port)],
                                         "server")
        process, _ = self.enterContext(server)
        self.assertTrue(pair.wait_for_listener(process, self.port, self.the_runner.patience))

    def run_qperf(self, *arguments):
        # It may wait for ever for a server that had to give up.
        command = ["timeout", "10", "qperf", self.world.server.address, "-lp", str(self.port),
                   *arguments]
        return self.the_runner.alone(command, self.world.client)

    def test_what_has_no_grh_is_refused_and_explained(self):
        servers_log = f"{self.the_runner.folder}/001-server.log"
        for name in WITHOUT_GRH:
            with self.subTest(name=name):
                before = len(pair.read(servers_log))
                finished = self.run_qperf(name)
                self.assertNotEqual(finished.status, 0, finished)
                logs = finished.log + pair.read(servers_log)[before:]
                self.assertTrue(re.search("has no GRH .*which RoCE needs", logs), finished)


if __name__ == "__main__":
    unittest.main()
