"""Packets that no peer sends: cut off at every length, and random ones, to connected queue pairs.

Nothing of it is answered, all of it is counted, and the queue pairs work as before.
"""

import collections
import contextlib
import ctypes
import os
import random
import re
import socket
import struct
import unittest

from tests.compat import nodes, observe
from tests.compat.captures import ROCE_PORT
from tests.compat.stock import cases
from tests.golden import golden_files

RANDOM_PACKETS = 1_000_000 if cases.SLOW else 100_000
BATCH = 2000  # packets between looks at whether the receiver keeps up
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def on_node(node):
    """This thread within the network namespace of a node."""
    if not node.prefix:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as home, \
            open(f"/run/netns/{node.prefix[-1]}", "rb") as there:
        assert libc.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), CLONE_NEWNET) == 0


class Sender:
    """A UDP socket that knows how its packets will look, so that it can compute their ICRC."""

    def __init__(self, source, destination):
        self.v6 = ":" in source
        family = socket.AF_INET6 if self.v6 else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind((source, 0))
        if not self.v6:
            self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        self.destination = (destination, ROCE_PORT)
        self.addresses = [socket.inet_pton(family, address) for address in (source, destination)]
        self.sent = 0

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendto(data, self.destination)
        self.sent += 1

    def with_icrc(self, data):
        """BTH to pad, and the ICRC that is right for this socket's packets."""
        length = 8 + len(data) + 4
        source, destination = self.addresses
        udp = struct.pack(">HHHH", self.socket.getsockname()[1], ROCE_PORT, length, 0)
        if self.v6:
            header = struct.pack(">IHBB", 6 << 28, length, 17, 64) + source + destination
        else:
            header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, 17, 0)
            header += source + destination
        icrc = golden_files.icrc(header + udp + data + bytes(4))
        return data + struct.pack("<I", icrc)


def bth(opcode, qpn, psn, pad=0):
    return struct.pack(">BBHII", opcode, 0x40 | pad << 4, 0xFFFF, qpn, 0x80000000 | psn)


class Hostile(cases.InWorld):
    WORLD = os.environ.get("URXE_TEST_WORLD", "v6")

    def setUp(self):
        address = self.world.server.device.split("/")[-1]
        with on_node(self.world.client):
            self.sender = Sender(self.world.client.device.split("/")[-1], address)
        self.addCleanup(self.sender.close)

    def send_all(self, paused, packets):
        """Sends packets, no faster than they are taken; returns how many the kernel lost."""
        def state():
            return observe.udp_sockets(paused.processes[0].pid, ROCE_PORT)
        for number, data in enumerate(packets):
            self.sender.send(data)
            if number % BATCH == 0:
                observe.wait_until(lambda: state()[0] == 0, 60, "reception")
        observe.wait_until(lambda: state()[0] == 0, 60, "reception")
        return state()[1]

    def assert_harmless(self, packets_to):
        """Sends what packets_to(queue pair numbers) gives to a resting checker; returns what was
        sent, and how much of it the checker counted."""
        with cases.paused_checkers(self) as paused:
            pid = paused.processes[0].pid
            before = observe.datagrams_sent(pid)
            lost = self.send_all(paused, packets_to(paused.queue_pairs()[0]))
            sent = observe.datagrams_sent(pid) - before
        # A process may look, with a few probes, whether the kernel still steers packets rightly.
        self.assertLess(sent, self.sender.sent + 1000, "this is more than a few probes")
        self.assert_both_work(paused.both)
        # A packet to nobody's queue pair may come to either process.
        counted = collections.Counter()
        for end in (paused.both.server, paused.both.client):
            values = re.findall(r"(?m)^(?:hw_)?counters/(\w+) (\d+)$", end.output)
            for (name, before), (_, after) in zip(values, values[len(values) // 2:]):
                counted[name] += int(after) - int(before)
        # An acknowledgement of before may have been on its way when the checkers came to rest.
        self.assertLess(counted["sent_pkts"], 8, "something was answered")
        self.assertEqual(lost, counted["excessive_buffer_overrun_errors"])
        return self.sender.sent - lost, counted

    def test_packets_cut_off_at_every_length_are_dropped_and_counted(self):
        def packets(numbers):
            for _, _, data in golden_files.read_blocks():
                start = 28 if data[0] >> 4 == 4 else 48
                body = bytearray(data[start:-4])
                body[5:8] = numbers[0].to_bytes(3, "big")
                whole = self.sender.with_icrc(bytes(body))
                for length in range(len(whole)):
                    yield whole[:length]  # its ICRC is cut off, too
        sent, found = self.assert_harmless(packets)
        self.assertGreater(sent, 3000)
        self.assertEqual(found["port_rcv_errors"], sent, found)

    def test_packets_too_short_for_their_headers_do_nothing_though_their_icrc_is_right(self):
        def packets(numbers):
            for _, fields, data in golden_files.read_blocks():
                start = 28 if data[0] >> 4 == 4 else 48
                opcode = int(fields["bth.opcode"], 0)
                headers = 12 + len(golden_files.put_extensions(opcode, fields))
                body = bytearray(data[start:start + headers])
                body[1] &= 0xCF  # no pad
                body[5:8] = numbers[0].to_bytes(3, "big")
                for length in range(12, headers):
                    yield self.sender.with_icrc(bytes(body[:length]))
        sent, found = self.assert_harmless(packets)
        self.assertGreater(sent, 500)
        self.assertEqual(found["port_rcv_errors"], sent, found)

    def test_random_packets_do_nothing(self):
        rng = random.Random(4791)
        noise = rng.randbytes(1 << 16)

        def packets(numbers):
            heads = [bth(opcode, qpn, rng.getrandbits(24)) for opcode in range(0x15)
                     for qpn in numbers]
            for number in range(RANDOM_PACKETS):
                start = rng.randrange(1 << 15)
                body = noise[start:start + rng.randrange(64)]
                yield body if number % 2 else heads[number // 2 % len(heads)] + body
        sent, found = self.assert_harmless(packets)
        self.assertGreater(sent, RANDOM_PACKETS * 0.9)
        self.assertEqual(found["port_rcv_errors"] + found["port_rcv_switch_relay_errors"], sent)


if __name__ == "__main__":
    unittest.main()
