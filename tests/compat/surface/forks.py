"""Forks of a program that asked libibverbs to be safe from them (RDMAV_FORK_SAFE, ibv_fork_init).

libibverbs keeps registered pages from the child then (madvise(2), MADV_DONTFORK): what a child may
touch is all the rest, and the parent's traffic goes on. Runs on rxe0.
"""

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import unittest

import pyverbs.enums as e
import pyverbs.mem_alloc as mem
from pyverbs.fork import fork_init, is_fork_initialized
from pyverbs.mr import MR
from pyverbs.wr import SGE

from tests.compat.surface.endpoint import ALL, joined

OK = e.IBV_WC_SUCCESS
PAGE = mmap.PAGESIZE


if is_fork_initialized() == e.IBV_FORK_DISABLED:  # the environment does not ask for it
    fork_init()


def pages(count):
    return mem.mmap(length=count * PAGE, prot=mem.PROT_READ_ | mem.PROT_WRITE_,
                    flags=mem.MAP_ANONYMOUS_ | mem.MAP_PRIVATE_)


def get(address):
    return ctypes.c_uint64.from_address(address).value


def put(address, value):
    ctypes.c_uint64.from_address(address).value = value


def in_child(action):
    """What becomes of a child that does this: its exit status, or minus the signal's number."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Forks(unittest.TestCase):
    def setUp(self):
        self.a, self.b = joined()
        self.registered = pages(2)
        self.beside = pages(2)
        put(self.beside, 1)
        self.mr = MR(self.a.pd, 2 * PAGE, ALL, address=self.registered)

    def send(self, value):
        """The parent's registered pages can still be written and read."""
        put(self.registered, value)
        self.b.receive()
        self.a.send(sge=SGE(self.registered, 8, self.mr.lkey))
        self.assertEqual(self.a.statuses() + self.b.statuses(), [OK] * 2)
        self.assertEqual(int.from_bytes(self.b.mr.read(8, 0), "little"), value)

    def test_libibverbs_is_safe_from_forks(self):
        self.assertNotEqual(is_fork_initialized(), e.IBV_FORK_DISABLED)

    def test_a_child_may_touch_what_is_not_registered(self):
        self.send(7)
        self.assertEqual(in_child(lambda: put(self.beside, 2)), 0)
        self.assertEqual(get(self.beside), 1)
        self.send(8)

    def test_registered_pages_are_not_there_in_a_child(self):
        self.assertEqual(in_child(lambda: get(self.registered)), -signal.SIGSEGV)
        self.send(9)

    def test_pages_are_there_again_once_they_are_not_registered(self):
        self.mr.close()
        put(self.registered, 5)
        self.assertEqual(in_child(lambda: put(self.registered, 6)), 0)
        self.assertEqual(get(self.registered), 5)

    def test_the_parent_writes_while_children_come_and_go(self):
        children = []
        for number in range(20):
            child = os.fork()
            if child == 0:
                put(self.beside, number)
                os._exit(0 if get(self.beside) == number else 1)
            children.append(child)
            self.send(100 + number)
        for child in children:
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_child_may_run_another_program_that_opens_the_device(self):
        program = "from pyverbs.device import Context; Context(name='rxe0').query_port(1)"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        self.send(10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
