"""Regions, on-demand paging and windows as programs use them. Runs on rxe0."""

import contextlib
import ctypes
import mmap
import os
import struct
import unittest

import pyverbs.enums as e
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.wr import SGE, SendWR
import pyverbs.mem_alloc as mem

from tests.compat.surface.endpoint import ALL, Endpoint, joined

OK = e.IBV_WC_SUCCESS
GB = 1 << 30
PAGE = mmap.PAGESIZE
NO_RESERVE = 0x4000  # MAP_NORESERVE, which pyverbs has no name for
REREG_MR = 11  # IB_USER_VERBS_CMD_REREG_MR
CHANGE_PLACE, CHANGE_ACCESS = 1, 4  # enum ibv_rereg_mr_flags
ON_DEMAND = e.IBV_ACCESS_ON_DEMAND | (ALL & ~e.IBV_ACCESS_MW_BIND)


def resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def mapping(size):
    return mem.mmap(length=size, prot=mem.PROT_READ_ | mem.PROT_WRITE_,
                    flags=mem.MAP_ANONYMOUS_ | mem.MAP_PRIVATE_ | NO_RESERVE)


def reregister(context, mr, flags, place=(0, 0), access=0):
    """The command that librxe 44 has no ibv_rereg_mr for, as the kernel takes it by write(): the
    new key."""
    keys = ctypes.create_string_buffer(8)
    start, length = place
    command = struct.pack("=IHHQIIQQQII", REREG_MR, 14, 2, ctypes.addressof(keys), mr.handle, flags,
                          start, length, start, 0, access)
    if os.write(context.cmd_fd, command) != len(command):
        raise AssertionError("a command was taken in part")
    return struct.unpack("=II", keys.raw)[1]


class Regions(unittest.TestCase):
    def test_a_huge_region_costs_nothing_until_it_is_used(self):
        a, b = joined()
        address = mapping(64 * GB)
        before = resident()
        huge = MR(b.pd, 64 * GB, ALL, address=address)
        a.mr.write("distant", 7)
        a.send(7, opcode=e.IBV_WR_RDMA_WRITE, to=(huge.rkey, address + 63 * GB))
        self.assertEqual(a.statuses(), [OK])
        self.assertEqual(bytes(mem.read64(address + 63 * GB).to_bytes(8, "little"))[:7], b"distant")
        self.assertLess(resident() - before, 64 << 20)
        huge.close()
        mem.munmap(address, 64 * GB)

    def test_an_implicit_region_is_the_whole_address_space(self):
        a, b = joined()
        everything = MR(b.pd, 0, ON_DEMAND, implicit=True)
        a.mr.write("anywhere", 8)
        a.send(8, opcode=e.IBV_WR_RDMA_WRITE, to=(everything.rkey, b.mr.buf + 100))
        self.assertEqual(a.statuses(), [OK])
        self.assertEqual(b.mr.read(8, 100), b"anywhere")

    def test_memory_that_went_away_fails_the_request_and_not_the_program(self):
        for on_demand in (False, True):
            with self.subTest(on_demand=on_demand):
                a, b = joined()
                address = mapping(PAGE)
                gone = MR(b.pd, PAGE, ON_DEMAND if on_demand else ALL, address=address)
                mem.munmap(address, PAGE)
                a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(gone.rkey, address))
                self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])
                a, b = joined()
                address = mapping(PAGE)
                local = MR(a.pd, PAGE, ALL, address=address)
                mem.munmap(address, PAGE)
                b.receive()
                a.send(sge=SGE(address, 64, local.lkey))
                self.assertEqual(a.statuses(), [e.IBV_WC_LOC_PROT_ERR])

    def test_nothing_may_be_written_to_nowhere(self):
        a, b = joined()
        a.send(sge=SGE(0, 0, 0), opcode=e.IBV_WR_RDMA_WRITE, to=(0xDEAD, 0))
        self.assertEqual(a.statuses(), [OK])
        b.receive()
        a.send(sge=SGE(a.mr.buf, 0, a.mr.lkey))
        self.assertEqual(a.statuses() + b.statuses(), [OK] * 2)

    def test_a_region_that_is_registered_again_has_a_new_key_and_new_rules(self):
        a, b = joined()
        old = b.mr.rkey
        key = reregister(b.context, b.mr, CHANGE_PLACE, (b.mr.buf + 1024, 1024))
        self.assertNotEqual(key, old)
        refused = e.IBV_WC_REM_ACCESS_ERR
        for offset, size, rkey, status in ((1024, 64, key, OK), (2047, 2, key, refused),
                                           (1023, 1, key, refused), (1024, 64, old, refused)):
            with self.subTest(offset=offset, size=size, rkey=rkey):
                c, d = Endpoint(), Endpoint(context=b.context, pd=b.pd)
                c.connect(d)
                d.connect(c)
                c.send(size, opcode=e.IBV_WR_RDMA_WRITE, to=(rkey, b.mr.buf + offset))
                self.assertEqual(c.statuses(), [status])
        key = reregister(b.context, b.mr, CHANGE_ACCESS,
                         access=e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ)
        a.send(opcode=e.IBV_WR_RDMA_READ, to=(key, b.mr.buf + 1024))
        self.assertEqual(a.statuses(), [OK])
        a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(key, b.mr.buf + 1024))
        self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])
        for flags, access in ((0, 0), (CHANGE_ACCESS, e.IBV_ACCESS_REMOTE_WRITE)):
            with self.assertRaises(OSError):
                reregister(b.context, b.mr, flags, access=access)

    def test_remote_write_without_local_write_is_refused(self):
        a, _ = joined()
        with self.assertRaises(PyverbsRDMAError):
            MR(a.pd, 64, e.IBV_ACCESS_REMOTE_WRITE)


class Windows(unittest.TestCase):
    def test_a_type_1_window_gives_access_to_its_part_and_is_taken_back(self):
        a, b = joined()
        window = MW(b.pd, e.IBV_MW_TYPE_1)
        info = MWBindInfo(b.mr, b.mr.buf + 256, 256, e.IBV_ACCESS_REMOTE_WRITE)
        b.qp.bind_mw(window, MWBind(info, e.IBV_SEND_SIGNALED))
        self.assertEqual(b.statuses(), [OK])
        a.mr.write("through", 7)
        a.send(7, opcode=e.IBV_WR_RDMA_WRITE, to=(window.rkey, b.mr.buf + 256))
        self.assertEqual(a.statuses(), [OK])
        self.assertEqual(b.mr.read(7, 256), b"through")
        a.send(64, opcode=e.IBV_WR_RDMA_WRITE, to=(window.rkey, b.mr.buf + 480))
        self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])

    def test_a_window_does_not_give_more_access_than_was_asked_for(self):
        a, b = joined()
        window = MW(b.pd, e.IBV_MW_TYPE_1)
        info = MWBindInfo(b.mr, b.mr.buf, 256, e.IBV_ACCESS_REMOTE_READ)
        b.qp.bind_mw(window, MWBind(info, e.IBV_SEND_SIGNALED))
        self.assertEqual(b.statuses(), [OK])
        a.send(64, opcode=e.IBV_WR_RDMA_READ, to=(window.rkey, b.mr.buf))
        self.assertEqual(a.statuses(), [OK])
        a.send(64, opcode=e.IBV_WR_RDMA_WRITE, to=(window.rkey, b.mr.buf))
        self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])

    @contextlib.contextmanager
    def type_2(self, end):
        """A window of type 2 on the end's first 256 bytes, for writing, and its key."""
        window = MW(end.pd, e.IBV_MW_TYPE_2)
        request = SendWR(opcode=e.IBV_WR_BIND_MW)
        request.set_bind_wr(window, MWBindInfo(end.mr, end.mr.buf, 256, e.IBV_ACCESS_REMOTE_WRITE))
        end.qp.post_send(request)
        self.assertEqual(end.statuses(), [OK])
        yield window, request.rkey
        window.close()

    def test_a_type_2_window_opens_memory_to_its_own_queue_pair_only(self):
        a, b = joined()
        with self.type_2(b) as (_, key):
            a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(key, b.mr.buf))
            self.assertEqual(a.statuses(), [OK])
            c, d = Endpoint(), Endpoint(context=b.context, pd=b.pd)
            c.connect(d)
            d.connect(c)
            c.send(opcode=e.IBV_WR_RDMA_WRITE, to=(key, b.mr.buf))
            self.assertEqual(c.statuses(), [e.IBV_WC_REM_ACCESS_ERR])
            a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(key, b.mr.buf + 192))
            self.assertEqual(a.statuses(), [OK])
            a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(key, b.mr.buf + 193))
            self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])

    def test_a_type_2_window_is_shut_by_its_owner(self):
        a, b = joined()
        with self.type_2(b) as (_, key):
            b.qp.post_send(SendWR(opcode=e.IBV_WR_LOCAL_INV, imm_data=key))
            self.assertEqual(b.statuses(), [OK])
            a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(key, b.mr.buf))
            self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])

    def test_a_type_2_window_is_shut_by_the_peer_and_the_receive_says_so(self):
        a, b = joined()
        with self.type_2(b) as (_, key):
            b.receive()
            a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND_WITH_INV, num_sge=1, sg=[a.sge()],
                                  imm_data=key))
            self.assertEqual(a.statuses(), [OK])
            received = b.poll()[0]
            self.assertEqual((received.status, received.wc_flags), (OK, e.IBV_WC_WITH_INV))
            a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(key, b.mr.buf))
            self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])

    def test_a_window_that_is_bound_is_not_bound_again(self):
        _, b = joined()
        with self.type_2(b) as (window, _):
            request = SendWR(opcode=e.IBV_WR_BIND_MW)
            request.set_bind_wr(window, MWBindInfo(b.mr, b.mr.buf, 64, e.IBV_ACCESS_REMOTE_WRITE))
            b.qp.post_send(request)
            self.assertEqual(b.statuses(), [e.IBV_WC_MW_BIND_ERR])

    def test_a_region_with_a_bound_window_is_busy(self):
        _, b = joined()
        window = MW(b.pd, e.IBV_MW_TYPE_1)
        info = MWBindInfo(b.mr, b.mr.buf, 256, e.IBV_ACCESS_REMOTE_READ)
        b.qp.bind_mw(window, MWBind(info, e.IBV_SEND_SIGNALED))
        self.assertEqual(b.statuses(), [OK])
        with self.assertRaises(PyverbsRDMAError):
            b.mr.close()
        window.close()
        b.mr.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
