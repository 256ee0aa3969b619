"""What the tools that list devices show of an emulated one."""

import json
import re
import unittest

from tests.compat import nodes
from tests.compat.stock import cases

# What Linux 6.1's rxe promises (`ibv_devinfo -v`); programs may check any of it.
MINIMA = {
    "max_mr_size": 0xFFFFFFFFFFFFFFFF, "max_qp": 1048560, "max_qp_wr": 1048576, "max_sge": 32,
    "max_sge_rd": 32, "max_cq": 1048576, "max_cqe": 32767, "max_mr": 524287, "max_pd": 1048576,
    "max_qp_rd_atom": 128, "max_res_rd_atom": 258048, "max_qp_init_rd_atom": 128,
    "max_mw": 524287, "max_mcast_grp": 8192, "max_mcast_qp_attach": 56,
    "max_total_mcast_qp_attach": 458752, "max_ah": 32767, "max_srq": 917503,
    "max_srq_wr": 1048576, "max_srq_sge": 27, "max_pkeys": 64, "phys_port_cnt": 1,
    "num_comp_vectors": 2, "max_msg_sz": 0x800000, "pkey_tbl_len": 1, "gid_tbl_len": 1024,
}
# Every bit of these is promised.
BITS = {"device_cap_flags": 0x01223C76, "page_size_cap": 0xFFFFF000, "port_cap_flags": 0x00010000}
VALUES = {
    "transport": "InfiniBand (0)", "atomic_cap": "ATOMIC_HCA (1)", "state": "PORT_ACTIVE (4)",
    "max_mtu": "4096 (5)", "link_layer": "Ethernet", "phys_state": "LINK_UP (5)",
}


def facts(text):
    """ibv_devinfo's lines with a colon; the first of a name counts."""
    found = {}
    for name, value in re.findall(r"(?m)^\s*([\w ]+):\s+(\S.*)$", text):
        found.setdefault(name, value)
    return found


class Listing(cases.InWorld):
    def output(self, user, *command):
        finished = self.runner(user, capture=False).alone(command)
        self.assertEqual(finished.status, 0, finished)
        return finished.output

    def test_ibv_devices(self):
        for user in self.users:
            self.assertRegex(self.output(user, "ibv_devices"),
                             r"(?m)^\s+rxe0\s+[0-9a-f]{16}$")

    def test_ibv_devinfo(self):
        for user in self.users:
            text = self.output(user, "ibv_devinfo", "-v")
            found = facts(text)
            for name, least in MINIMA.items():
                self.assertGreaterEqual(int(found[name].split()[0], 0), least, name)
            for name, bits in BITS.items():
                self.assertEqual(int(found[name], 0) & bits, bits, name)
            for name, value in VALUES.items():
                self.assertEqual(found[name], value, name)
            self.assertIn(f"{self.world.mtu} (", found["active_mtu"])
            gids = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+), RoCE v2", text)
            self.assertEqual(len(gids), len(self.world.server.gids), text)

    def test_ibstat_and_ibstatus(self):
        for user in self.users:
            text = self.output(user, "/usr/sbin/ibstat")
            for line in ("CA 'rxe0'", "State: Active", "Physical state: LinkUp"):
                self.assertIn(line, text)
            text = self.output(user, "/usr/sbin/ibstatus")
            for line in ("'rxe0' port 1", "4: ACTIVE", "5: LinkUp"):
                self.assertIn(line, text)

    def test_urxe_devices(self):
        build, _ = nodes.product()
        for user in self.users:
            command = [f"{build}/bin/urxe", "devices", "--device", self.world.server.device]
            self.assertIn("rxe0", self.output(user, *command))
            devices = json.loads(self.output(user, *command, "--json"))
            self.assertIn("rxe0", json.dumps(devices))

    def test_the_gids_of_urxe_devices_are_those_of_ibv_devinfo(self):
        build, _ = nodes.product()
        shown = self.output(self.users[0], f"{build}/bin/urxe", "devices", "--device",
                            self.world.server.device, "--json")
        text = self.output(self.users[0], "ibv_devinfo", "-v")
        for gid in re.findall(r"GID\[\s*\d+\]:\s+(\S+), RoCE v2", text):
            self.assertIn(gid.removeprefix("::ffff:"), shown)


if __name__ == "__main__":
    unittest.main()
