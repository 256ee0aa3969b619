"""Completion queues, contexts and forks as programs use them. Runs on rxe0."""

import os
import threading
import unittest

import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.srq import SrqAttr

from tests.compat.surface.endpoint import PATIENCE, Endpoint, joined, next_event

OK = e.IBV_WC_SUCCESS


class CompletionQueues(unittest.TestCase):
    def test_a_resize_keeps_what_is_inside_and_its_order(self):
        a, b = joined(cqe=8)
        for number in range(6):
            b.receive(wr_id=number)
        for number in range(6):
            a.send(wr_id=number)
        self.assertEqual(a.statuses(6), [OK] * 6)
        first = b.poll(2)
        b.cq.resize(200)
        rest = b.poll(4)
        self.assertEqual([c.wr_id for c in first + rest], list(range(6)))
        self.assertGreaterEqual(b.cq.cqe, 200)
        for number in range(40):
            b.receive(wr_id=100 + number)
        for number in range(40):
            a.send(wr_id=number)
            self.assertEqual(a.statuses(), [OK])
        self.assertEqual([c.wr_id for c in b.poll(40)], list(range(100, 140)))

    def test_a_queue_cannot_become_smaller_than_what_it_holds(self):
        a, b = joined(cqe=64)
        for _ in range(20):
            b.receive()
            a.send()
            self.assertEqual(a.statuses(), [OK])
        with self.assertRaises(PyverbsRDMAError):
            b.cq.resize(4)
        self.assertEqual(b.statuses(20), [OK] * 20)

    def test_many_queues_tell_one_channel_which_of_them_is_meant(self):
        owner = Endpoint()
        queues = [CQ(owner.context, 4, None, owner.channel, 0) for _ in range(50)]
        a, b = joined()
        for queue in queues:
            queue.req_notify()
        b.cq.req_notify()
        b.receive()
        a.send()
        self.assertEqual(a.statuses(), [OK])
        b.channel.get_cq_event(b.cq)
        b.cq.ack_events(1)
        self.assertEqual(b.statuses(), [OK])

    def test_threads_that_poll_one_queue_get_each_completion_once(self):
        a, b = joined(cqe=256)
        count, found, lock = 60, [], threading.Lock()
        for number in range(count):
            b.receive(wr_id=number)

        def poll():
            while True:
                with lock:
                    if len(found) >= count:
                        return
                got, completions = b.cq.poll(4)
                with lock:
                    found.extend(c.wr_id for c in completions[:got])

        threads = [threading.Thread(target=poll) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(count):
            a.send(wr_id=number)
            self.assertEqual(a.statuses(), [OK])
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        self.assertEqual(sorted(found), list(range(count)))


class SharedReceiveQueues(unittest.TestCase):
    def test_queue_pairs_of_all_types_take_from_one_queue(self):
        owner = Endpoint(with_srq=True)
        for number, qp_type in enumerate((e.IBV_QPT_RC, e.IBV_QPT_UC, e.IBV_QPT_UD)):
            with self.subTest(qp_type=qp_type):
                taker = Endpoint(qp_type, context=owner.context, pd=owner.pd, srq=owner.srq)
                sender = Endpoint(qp_type)
                sender.connect(taker)
                taker.connect(sender)
                owner.receive(size=128, wr_id=number, sge=owner.sge(128))
                sender.send()
                self.assertEqual(sender.statuses(), [OK])
                received = taker.poll()[0]
                self.assertEqual((received.status, received.wr_id, received.qp_num),
                                 (OK, number, taker.qp.qp_num))

    def test_a_limit_is_told_whatever_the_type_that_reaches_it(self):
        for qp_type in (e.IBV_QPT_UC, e.IBV_QPT_UD):
            with self.subTest(qp_type=qp_type):
                a, b = Endpoint(qp_type), Endpoint(qp_type, with_srq=True)
                a.connect(b)
                b.connect(a)
                for _ in range(3):
                    b.receive(size=128)
                b.srq.modify(SrqAttr(srq_limit=2), e.IBV_SRQ_LIMIT)
                for _ in range(2):
                    a.send()
                self.assertEqual(a.statuses(2) + b.statuses(2), [OK] * 4)
                self.assertEqual(next_event(b.context), e.IBV_EVENT_SRQ_LIMIT_REACHED)

    def test_a_queue_becomes_larger_with_receives_inside_and_not_smaller_than_its_limit(self):
        a, b = Endpoint(), Endpoint(with_srq=True)
        a.connect(b)
        b.connect(a)
        for number in range(4):
            b.receive(wr_id=number)
        b.srq.modify(SrqAttr(max_wr=200), e.IBV_SRQ_MAX_WR)
        self.assertGreaterEqual(b.srq.query().max_wr, 200)
        for number in range(4, 100):
            b.receive(wr_id=number)
        for _ in range(100):
            a.send()
            self.assertEqual(a.statuses(), [OK])
            b_done = b.poll()
            self.assertEqual(b_done[0].status, OK)
        b.srq.modify(SrqAttr(srq_limit=150), e.IBV_SRQ_LIMIT)
        with self.assertRaises(PyverbsRDMAError):
            b.srq.modify(SrqAttr(max_wr=20), e.IBV_SRQ_MAX_WR)


class Contexts(unittest.TestCase):
    def test_a_device_can_be_opened_again_and_again(self):
        for _ in range(20):
            endpoint = Endpoint()
            endpoint.context.close()

    def test_many_contexts_live_side_by_side(self):
        contexts = [Context(name="rxe0") for _ in range(40)]
        a, b = Endpoint(context=contexts[0]), Endpoint(context=contexts[39])
        a.connect(b)
        b.connect(a)
        b.receive()
        a.send()
        self.assertEqual(a.statuses() + b.statuses(), [OK] * 2)

    def test_a_fork_disturbs_neither_the_parent_nor_the_child(self):
        a, b = joined()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                c, d = joined()  # opened afresh
                d.receive()
                c.send()
                if c.statuses() + d.statuses() == [OK] * 2:
                    try:
                        a.send()  # dead
                    except PyverbsRDMAError:
                        status = 0
            finally:
                os._exit(status)
        b.receive()
        a.send()
        self.assertEqual(a.statuses() + b.statuses(), [OK] * 2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        b.receive()
        a.send()
        self.assertEqual(a.statuses() + b.statuses(), [OK] * 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
