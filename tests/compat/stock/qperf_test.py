"""qperf's tests of verbs. It has no option for a GID: only by rdma_cm (-cm 1), which it uses for RC,
does it set the GRH that RoCE needs."""

import re
import unittest

from tests.compat import nodes, pair
from tests.compat.stock import cases

RC = ("rc_bw", "rc_bi_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw",
      "rc_rdma_write_lat", "rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr",
      "ver_rc_compare_swap", "ver_rc_fetch_add")
WITHOUT_GRH = ("rc_lat", "uc_bw", "uc_lat", "uc_rdma_write_lat", "ud_bw", "ud_lat")


class Qperf(cases.InWorld):
    def setUp(self):
        self.the_runner = self.runner(capture=False)
        self.port = nodes.free_port()
        server = self.the_runner.started(self.world.server, ["qperf", "-lp", str(self.port)],
                                         "server")
        process, _ = self.enterContext(server)
        self.assertTrue(pair.wait_for_listener(process, self.port, self.the_runner.patience))

    def measure(self, *arguments):
        command = ["qperf", self.world.server.address, "-lp", str(self.port), "-t", "1",
                   *arguments]
        return self.the_runner.alone(command, self.world.client)

    def test_every_test_of_rc_measures_something(self):
        for name in RC:
            with self.subTest(name=name):
                finished = self.measure("-cm", "1", name)
                self.assertEqual(finished.status, 0, finished)
                self.assertRegex(finished.output,
                                 name + r":\s+(bw|latency|msg_rate) +=  [1-9][\d.]* ")

    def test_what_has_no_grh_is_refused_and_explained(self):
        for name in WITHOUT_GRH:
            with self.subTest(name=name):
                finished = self.measure(name)
                self.assertEqual(finished.status, 1, finished)
                logs = finished.log + pair.read(f"{self.the_runner.folder}/001-server.log")
                self.assertTrue(re.search("has no GRH .*which RoCE needs", logs), finished)


if __name__ == "__main__":
    unittest.main()
