"""Asynchronous events. Runs on rxe0, on an eth0 of its own, which goes down and up again."""

import os
import subprocess
import unittest

import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QPAttr
from pyverbs.srq import SrqAttr

from tests.compat.surface.endpoint import Endpoint, gids, joined, next_event, wait_until

COUNTED = ("rdma_sends", "rdma_recvs", "sent_pkts", "rcvd_pkts", "send_err")
NEW = "10.83.0.77"
NEW_GID = "0000:0000:0000:0000:0000:ffff:0a53:004d"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, timeout=30)


def counter(name, directory="counters"):
    with open(f"/sys/class/infiniband/rxe0/ports/1/{directory}/{name}", encoding="ascii") as file:
        return int(file.read())


def events_until(context, last):
    """Events up to the one of type `last`, without those of GIDs: the kernel takes IPv6 addresses
    away when an interface goes down, and gives them back one by one."""
    found = []
    while last not in found:
        event = next_event(context)
        if event != e.IBV_EVENT_GID_CHANGE:
            found.append(event)
    return found


class Port(unittest.TestCase):
    def test_a_port_goes_down_and_up_with_its_interface(self):
        context = Context(name="rxe0")
        self.assertEqual(context.query_port(1).state, e.IBV_PORT_ACTIVE)
        ip("link", "set", "eth0", "down")
        self.assertEqual(events_until(context, e.IBV_EVENT_PORT_ERR), [e.IBV_EVENT_PORT_ERR])
        self.assertEqual(context.query_port(1).state, e.IBV_PORT_DOWN)
        self.assertEqual(counter("link_downed"), 1)
        ip("link", "set", "eth0", "up")
        self.assertEqual(events_until(context, e.IBV_EVENT_PORT_ACTIVE),
                         [e.IBV_EVENT_PORT_ACTIVE])
        self.assertEqual(context.query_port(1).state, e.IBV_PORT_ACTIVE)

    def test_the_largest_path_mtu_is_that_of_the_interface_at_the_moment(self):
        a, b = joined()
        for mtu, active in ((1500, e.IBV_MTU_1024), (9000, e.IBV_MTU_4096)):
            with self.subTest(mtu=mtu):
                ip("link", "set", "eth0", "mtu", str(mtu))
                wait_until(lambda: a.context.query_port(1).active_mtu == active)
                b.receive(size=4096)
                a.send(size=4096)  # an old connection goes on
                self.assertEqual(a.statuses() + b.statuses(), [e.IBV_WC_SUCCESS] * 2)
                fits = active == e.IBV_MTU_4096
                attributes = a.attributes(b)
                attributes.path_mtu = e.IBV_MTU_4096
                if fits:
                    Endpoint().qp.to_rtr(attributes)
                else:
                    self.assertRaises(PyverbsRDMAError, Endpoint().qp.to_rtr, attributes)
                datagrams, _ = joined(qp_type=e.IBV_QPT_UD)
                datagrams.send(size=2048)
                self.assertEqual(datagrams.statuses(),
                                 [e.IBV_WC_SUCCESS if fits else e.IBV_WC_LOC_LEN_ERR])

    def test_the_gid_table_follows_addresses_and_keeps_its_indexes(self):
        context = Context(name="rxe0")
        before = {i: gid for i, gid in gids(context).items() if gid.startswith("0000:")}
        ip("address", "add", f"{NEW}/24", "dev", "eth0")
        while NEW_GID not in gids(context).values():
            self.assertEqual(next_event(context), e.IBV_EVENT_GID_CHANGE)
        after = gids(context)
        self.assertEqual({i: after[i] for i in before}, before)
        with open("/sys/class/infiniband/rxe0/ports/1/gids/"
                  f"{next(i for i in after if after[i] == NEW_GID)}", encoding="ascii") as file:
            self.assertEqual(file.read().strip(), NEW_GID)
        ip("address", "delete", f"{NEW}/24", "dev", "eth0")
        while NEW_GID in gids(context).values():
            self.assertEqual(next_event(context), e.IBV_EVENT_GID_CHANGE)

    def test_a_connection_by_a_new_address_works(self):
        ip("address", "add", f"{NEW}/24", "dev", "eth0")
        a = Endpoint()
        b = Endpoint()
        try:
            while NEW_GID not in gids(b.context).values():
                next_event(b.context)
            new_index = next(i for i, gid in gids(b.context).items() if gid == NEW_GID)
            a.qp.to_rts(a.attributes(b, gid=NEW_GID))
            b.qp.to_rts(b.attributes(a, index=new_index))
            b.receive()
            a.send()
            self.assertEqual(a.statuses() + b.statuses(), [e.IBV_WC_SUCCESS] * 2)
        finally:
            ip("address", "delete", f"{NEW}/24", "dev", "eth0")

    def test_traffic_goes_on_after_the_interface_was_down(self):
        a, b = joined()
        ip("link", "set", "eth0", "down")
        ip("link", "set", "eth0", "up")
        b.receive()
        a.send()
        self.assertEqual(a.statuses() + b.statuses(), [e.IBV_WC_SUCCESS] * 2)


class Device(unittest.TestCase):
    def test_a_fatal_error_on_request_ends_queue_pairs_and_is_told(self):
        a, _ = joined()
        a.receive()
        build = os.path.dirname(os.path.dirname(os.environ["LD_PRELOAD"].split(":")[-1]))
        ask = [f"{build}/bin/urxe", "event", str(os.getpid()), "rxe0"]
        subprocess.run([*ask, "device_fatal"], check=True, timeout=60)
        events = {next_event(a.context), next_event(a.context)}
        self.assertEqual(events, {e.IBV_EVENT_DEVICE_FATAL, e.IBV_EVENT_QP_FATAL})
        self.assertEqual(a.statuses(), [e.IBV_WC_WR_FLUSH_ERR])
        self.assertNotEqual(subprocess.run([*ask, "nonsense"], check=False, timeout=60,
                                           stderr=subprocess.DEVNULL).returncode, 0)


class Counters(unittest.TestCase):
    def test_counters_count_what_their_names_say(self):
        a, b = joined()
        before = {name: counter(name, "hw_counters") for name in COUNTED}
        for _ in range(3):
            b.receive(size=256)
            a.send(size=256)
            self.assertEqual(a.statuses() + b.statuses(), [e.IBV_WC_SUCCESS] * 2)
        a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(b.mr.rkey ^ 0x100, b.mr.buf))
        self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])
        grown = {name: counter(name, "hw_counters") - before[name] for name in COUNTED}
        self.assertEqual(grown["rdma_sends"], 3)
        self.assertEqual(grown["rdma_recvs"], 3)
        self.assertGreaterEqual(grown["sent_pkts"], 8)
        self.assertEqual(grown["sent_pkts"], grown["rcvd_pkts"])
        self.assertEqual(grown["send_err"], 0)
        self.assertEqual(counter("unicast_xmit_packets") + counter("multicast_xmit_packets"),
                         counter("port_xmit_packets"))


class QueuePairs(unittest.TestCase):
    def test_the_first_packet_in_rtr_establishes_communication(self):
        a, b = Endpoint(), Endpoint()
        b.qp.to_rtr(b.attributes(a))
        b.receive()
        a.connect(b)
        a.send()
        self.assertEqual(a.statuses(), [e.IBV_WC_SUCCESS])
        self.assertEqual(next_event(b.context), e.IBV_EVENT_COMM_EST)

    def test_a_drained_send_queue_says_so_if_asked(self):
        a, _ = joined()
        drain = QPAttr(qp_state=e.IBV_QPS_SQD)
        drain.en_sqd_async_notify = 1
        a.qp.modify(drain, e.IBV_QP_STATE | e.IBV_QP_EN_SQD_ASYNC_NOTIFY)
        self.assertEqual(next_event(a.context), e.IBV_EVENT_SQ_DRAINED)

    def test_a_limit_of_a_shared_receive_queue_is_told_once_when_it_is_reached(self):
        a, b = Endpoint(), Endpoint(with_srq=True)
        a.connect(b)
        b.connect(a)
        for _ in range(4):
            b.receive()
        b.srq.modify(SrqAttr(srq_limit=3), e.IBV_SRQ_LIMIT)
        a.send()
        a.send()
        self.assertEqual(a.statuses(2), [e.IBV_WC_SUCCESS] * 2)
        self.assertEqual(next_event(b.context), e.IBV_EVENT_SRQ_LIMIT_REACHED)
        self.assertEqual(b.srq.query().srq_limit, 0)
        b.qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
        self.assertEqual(next_event(b.context), e.IBV_EVENT_QP_LAST_WQE_REACHED)

    def test_a_request_without_permission_is_an_access_error_at_the_responder(self):
        a, b = Endpoint(), Endpoint(access=e.IBV_ACCESS_LOCAL_WRITE)
        a.connect(b)
        b.connect(a)
        a.send(opcode=e.IBV_WR_RDMA_WRITE, to=(b.mr.rkey, b.mr.buf))
        self.assertEqual(a.statuses(), [e.IBV_WC_REM_ACCESS_ERR])
        self.assertEqual(next_event(b.context), e.IBV_EVENT_QP_ACCESS_ERR)

    def test_a_completion_queue_that_overflows_says_so(self):
        a, b = joined(cqe=4)
        room = b.cq.cqe
        for _ in range(room + 4):
            b.receive()
        for _ in range(room + 4):
            a.send()
            self.assertEqual(a.statuses(), [e.IBV_WC_SUCCESS])
        self.assertEqual(next_event(b.context), e.IBV_EVENT_CQ_ERR)


if __name__ == "__main__":
    unittest.main(verbosity=2)
