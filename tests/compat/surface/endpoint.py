"""Queue pairs for the programs of this folder, on Debian's pyverbs: two in one process, joined."""

import signal
import time

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

PATIENCE = 30  # seconds
QKEY = 0x1234
REMOTE = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
ALL = e.IBV_ACCESS_LOCAL_WRITE | REMOTE | e.IBV_ACCESS_MW_BIND


def interrupt(_signal, _frame):
    raise AssertionError("what was waited for did not come")


signal.signal(signal.SIGALRM, interrupt)


def next_event(context):
    """The type of the next asynchronous event, acknowledged. pyverbs waits in C; a signal ends it.
    """
    signal.alarm(PATIENCE)
    event = context.get_async_event()
    signal.alarm(0)
    event.ack()
    return event.event_type


def gids(context):
    """The GIDs as text, by index."""
    return {entry.gid_index: str(entry.gid_str()) for entry in context.query_gid_table(1024)}


def v4_gid(context):
    """The index of the first GID that is an IPv4 address, and the GID."""
    return next((index, gid) for index, gid in gids(context).items()
                if gid.startswith("0000:0000:0000:0000:0000:ffff:"))


class Endpoint:
    """A context with a domain, memory and queues, and a queue pair."""

    def __init__(self, qp_type=e.IBV_QPT_RC, cqe=16, with_srq=False, context=None, rnr_retry=7,
                 access=ALL, pd=None, srq=None):
        self.context = context or Context(name="rxe0")
        self.pd = pd or PD(self.context)
        self.channel = CompChannel(self.context)
        self.cq = CQ(self.context, cqe, None, self.channel, 0)
        self.srq = srq
        if with_srq:
            self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=64, max_sge=4)))
        self.mr = MR(self.pd, 4096, access)
        self.rnr_retry = rnr_retry
        self.peer = None  # of datagrams: an address handle and a number
        cap = QPCap(max_send_wr=64, max_recv_wr=64, max_send_sge=4, max_recv_sge=4)
        self.qp = QP(self.pd, QPInitAttr(qp_type=qp_type, scq=self.cq, rcq=self.cq, srq=self.srq,
                                         cap=cap, sq_sig_all=1))

    def attributes(self, peer, index=None, gid=None):
        """For a connection to the peer, from and to the first IPv4 addresses, or from the GID with
        this index and to this GID."""
        index = v4_gid(self.context)[0] if index is None else index
        gid = gid or v4_gid(peer.context)[1]
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = REMOTE
        attributes.dest_qp_num = peer.qp.qp_num
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer = 1
        attributes.timeout, attributes.retry_cnt = 14, 7
        attributes.rnr_retry = self.rnr_retry
        attributes.ah_attr = AHAttr(gr=GlobalRoute(dgid=GID(gid), sgid_index=index),
                                    is_global=1, port_num=1)
        return attributes

    def connect(self, peer):
        if self.qp.qp_type != e.IBV_QPT_UD:
            self.qp.to_rts(self.attributes(peer))
            return
        attributes = QPAttr(port_num=1)
        attributes.qkey = QKEY
        self.qp.to_rts(attributes)
        self.peer = (AH(self.pd, attr=self.attributes(peer).ah_attr), peer.qp.qp_num)

    def sge(self, size=64, offset=0, mr=None):
        mr = mr or self.mr
        return SGE(mr.buf + offset, size, mr.lkey)

    def receive(self, size=64, wr_id=0, sge=None):
        request = RecvWR(wr_id=wr_id, sg=[sge or self.sge(size)], num_sge=1)
        (self.srq or self.qp).post_recv(request)

    def send(self, size=64, wr_id=0, opcode=e.IBV_WR_SEND, sge=None, to=None, flags=0):
        request = SendWR(wr_id=wr_id, opcode=opcode, num_sge=1, sg=[sge or self.sge(size)],
                         send_flags=flags)
        if to is not None:
            rkey, address = to
            request.set_wr_rdma(rkey, address)
        if self.peer is not None:
            request.set_wr_ud(*self.peer, QKEY)
        self.qp.post_send(request)

    def poll(self, count=1):
        """The completions that come, in order; waits for them."""
        found = []
        deadline = time.monotonic() + PATIENCE
        while len(found) < count:
            got, completions = self.cq.poll(count - len(found))
            found += completions[:got]
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(found)} of {count} completions came")
        return found

    def statuses(self, count=1):
        return [completion.status for completion in self.poll(count)]


def wait_until(is_so):
    """Looks again and again until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError("what was waited for did not come")
        time.sleep(0.02)


def joined(**options):
    """Two endpoints in RTS that are each other's peers."""
    a, b = Endpoint(**options), Endpoint(**options)
    a.connect(b)
    b.connect(a)
    return a, b
