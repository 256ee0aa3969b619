#!/usr/bin/env python3
"""Posts every RC, UC and UD operation, and operations that must fail, and checks what happens.

  wire.py server [OPTION...]                     serves until it is killed
  wire.py client ADDRESS [OPTION...] [CASE...]   exits with 1 on a difference; see CASES

The client posts operations, the server posts receives. The client checks each completion's status,
the data that READs and atomics bring (it keeps a copy of what the server's memory should hold) and
the server's report of what arrived. At the usual path MTU, 1024, 3000 bytes make a first, a middle
and a last packet. The client starts at PSN 0xfffff0, so PSNs wrap.

Control channel: a TCP connection per case, a JSON value per line:
  client: the case's name
  both:   {"qpn", "psn", "gid", "addr", "rkey"}; of 32 KiB for remote operations
  server: {"window": rkey or null} when its receives are posted
  client: "posted" (case rnr: the receives are posted 80 ms later)
  client: "done"
  server: {"received": [[kind, length, immediate or rkey, data is right]...],
           "crc": CRC32 of the 32 KiB}
"""
import argparse
import json
import random
import socket
import sys
import time
import zlib
from typing import Callable, NamedTuple

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

# Each side's memory: receive slots, then the server's target of remote operations, or the client's
# source and sink.
SLOTS, SLOT, HALF = 32, 4096, 16384
TARGET = SOURCE = SLOTS * SLOT
SINK = SOURCE + HALF
DATA = random.Random(1).randbytes(HALF)
TARGET_DATA = random.Random(2).randbytes(2 * HALF)

QKEY = 0x11111111
LOCAL, WRITE = e.IBV_ACCESS_LOCAL_WRITE, e.IBV_ACCESS_REMOTE_WRITE
READ, ATOMIC = e.IBV_ACCESS_REMOTE_READ, e.IBV_ACCESS_REMOTE_ATOMIC
OPCODES = {
    'SEND': e.IBV_WR_SEND, 'SEND_IMM': e.IBV_WR_SEND_WITH_IMM,
    'SEND_INV': e.IBV_WR_SEND_WITH_INV, 'WRITE': e.IBV_WR_RDMA_WRITE,
    'WRITE_IMM': e.IBV_WR_RDMA_WRITE_WITH_IMM, 'READ': e.IBV_WR_RDMA_READ,
    'FETCH_ADD': e.IBV_WR_ATOMIC_FETCH_AND_ADD, 'CMP_SWAP': e.IBV_WR_ATOMIC_CMP_AND_SWP}
MTUS = {256: e.IBV_MTU_256, 512: e.IBV_MTU_512, 1024: e.IBV_MTU_1024, 2048: e.IBV_MTU_2048,
        4096: e.IBV_MTU_4096}


class Channel:
    """JSON values over a connection. Two file objects: writing to one empties what it has read."""

    def __init__(self, connection):
        self.reader, self.writer = connection.makefile('r'), connection.makefile('w')

    def send(self, value):
        self.writer.write(json.dumps(value) + '\n')
        self.writer.flush()

    def receive(self):
        return json.loads(self.reader.readline() or 'null')


class Endpoint:
    """A QP connected to the peer's, with one CQ and one memory region."""

    def __init__(self, options, case, channel, psn, access):
        self.type = case.type
        self.context = Context(name=options.dev)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 256)
        bind = e.IBV_ACCESS_MW_BIND if case.window else 0
        self.mr = MR(self.pd, SINK + HALF, LOCAL | READ | WRITE | ATOMIC | bind)
        caps = QPCap(max_send_wr=64, max_recv_wr=64, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=self.type, scq=self.cq, rcq=self.cq, cap=caps, sq_sig_all=1)
        self.qp = QP(self.pd, init)
        gid = str(self.context.query_gid(1, options.gid))
        channel.send({'qpn': self.qp.qp_num, 'psn': psn, 'gid': gid,
                      'addr': self.mr.buf + TARGET, 'rkey': self.mr.rkey})
        self.peer = channel.receive()
        self.connect(options, psn, access)

    def connect(self, options, psn, access):
        attr = QPAttr(port_num=1)
        attr.sq_psn = psn
        route = GlobalRoute(dgid=GID(self.peer['gid']), sgid_index=options.gid)
        path = AHAttr(port_num=1, is_global=1, gr=route)
        if self.type == e.IBV_QPT_UD:
            attr.qkey = QKEY
            self.ah = AH(self.pd, attr=path)
        else:
            attr.ah_attr, attr.path_mtu = path, MTUS[options.mtu]
            attr.dest_qp_num, attr.rq_psn = self.peer['qpn'], self.peer['psn']
            rc = self.type == e.IBV_QPT_RC
            attr.qp_access_flags = access if rc else access & (LOCAL | WRITE)
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
            attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 12
        self.qp.to_rts(attr)

    def completion(self, seconds):
        """The next completion, or None if there is none in this time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            count, completions = self.cq.poll(1)
            if count:
                return completions[0]
        return None


class Server(Endpoint):
    def post_receives(self, length):
        for slot in range(SLOTS):
            sge = SGE(self.mr.buf + slot * SLOT, length, self.mr.lkey)
            self.qp.post_recv(RecvWR(wr_id=slot, num_sge=1, sg=[sge]))

    def bind_window(self):
        """Bind a memory window to the target's first page; return its rkey."""
        self.window = MW(self.pd, e.IBV_MW_TYPE_2)
        request = SendWR(opcode=e.IBV_WR_BIND_MW, send_flags=e.IBV_SEND_SIGNALED)
        request.set_bind_wr(self.window, MWBindInfo(self.mr, self.mr.buf + TARGET, 4096, WRITE))
        rkey = request.rkey
        self.qp.post_send(request)
        self.completion(5)
        return rkey

    def report(self):
        received = []
        while (done := self.completion(0.3)) is not None:
            if done.status == e.IBV_WC_SUCCESS:
                received.append(self.describe(done))
            elif done.status != e.IBV_WC_WR_FLUSH_ERR:
                print(f'  a receive ended with status {done.status}')
        return {'received': received, 'crc': zlib.crc32(self.mr.read(2 * HALF, TARGET))}

    def describe(self, done):
        if done.opcode == e.IBV_WC_RECV_RDMA_WITH_IMM:
            return ['WRITE_IMM', done.byte_len, socket.ntohl(done.imm_data), True]
        header = 40 if self.type == e.IBV_QPT_UD else 0
        length = done.byte_len - header
        right = self.mr.read(length, done.wr_id * SLOT + header) == DATA[:length]
        if done.wc_flags & e.IBV_WC_WITH_IMM:
            return ['SEND_IMM', length, socket.ntohl(done.imm_data), right]
        inverted = e.IBV_WC_WITH_INV | 4  # rxe passes the kernel's flag, 4
        if self.type == e.IBV_QPT_RC and done.wc_flags & inverted:
            return ['SEND_INV', length, done.imm_data, right]
        return ['SEND', length, 0, right]


class Client(Endpoint):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.mr.write(DATA, HALF, SOURCE)
        self.remote = bytearray(TARGET_DATA)
        self.window = None
        self.pending, self.received, self.differences = [], [], 0

    def do(self, operation, length, **details):
        self.post(operation, length, **details)
        self.wait()

    def post(self, operation, length, at=0, sink=0, key=0, rkey=None, operands=None, flags=0,
             expect=e.IBV_WC_SUCCESS):
        """Post an operation on `length` bytes at offset `at` of the server's target.

        key: the immediate, or the rkey to invalidate; operands: (add, 0) or (compare, swap);
        expect: the completion's status, or those that it may be.
        """
        fetches = operands or operation == 'READ'
        offset = SINK + sink if fetches else SOURCE
        if fetches:
            self.mr.write(bytes(length), length, offset)
        sge = SGE(self.mr.buf + offset, length, self.mr.lkey)
        request = SendWR(opcode=OPCODES[operation], num_sge=1, sg=[sge],
                         send_flags=e.IBV_SEND_SIGNALED | flags,
                         imm_data=key if operation == 'SEND_INV' else socket.htonl(key))
        rkey, address = self.peer['rkey'] if rkey is None else rkey, self.peer['addr'] + at
        if operands:
            request.set_wr_atomic(rkey, address, *operands)
        elif fetches or operation.startswith('WRITE'):
            request.set_wr_rdma(rkey, address)
        elif self.type == e.IBV_QPT_UD:
            request.set_wr_ud(self.ah, self.peer['qpn'], QKEY)
        self.qp.post_send(request)
        old = b''
        if expect == e.IBV_WC_SUCCESS:
            old = self.apply(operation, length, at, operands)
            if operation.startswith('SEND') or operation == 'WRITE_IMM':
                self.received.append([operation, length, key, True])
        self.pending.append((f'{operation} {length}', expect, offset, old if fetches else b''))

    def apply(self, operation, length, at, operands):
        """Do the operation on the copy of the server's memory; return what was there."""
        old = bytes(self.remote[at:at + length])
        if operation.startswith('WRITE'):
            self.remote[at:at + length] = DATA[:length]
        elif operands:
            value = int.from_bytes(old, sys.byteorder)
            if operation == 'FETCH_ADD':
                value = (value + operands[0]) % 2**64
            elif value == operands[0]:
                value = operands[1]
            self.remote[at:at + length] = value.to_bytes(8, sys.byteorder)
        return old

    def wait(self):
        """Check the completions and the data of all that was posted."""
        for title, expect, offset, fetched in self.pending:
            done = self.completion(15)
            self.check(title, done.status if done else 'missing', expect)
            if self.mr.read(len(fetched), offset) != fetched:
                self.check(f'{title}, data', 'different', 'what the server holds')
        self.pending = []

    def check(self, title, value, expected):
        right = value in expected if isinstance(expected, tuple) else value == expected
        self.differences += not right
        if right:
            print(f'  ok {title}: {value}')
        else:
            print(f'  DIFFERENCE {title}: {value}, expected {expected}')

    def rc(self):
        for length in (1, 3, 64, 1024, 1025, 3000, 0):
            self.do('SEND', length)
        self.do('SEND', 10, flags=e.IBV_SEND_SOLICITED)
        for length in (16, 3000):
            self.do('SEND_IMM', length, key=0x11223344)
        for length in (1, 8, 1024, 3000, HALF, 0):
            self.do('WRITE', length, at=length % 5)
        for length in (5, 3000, 0):
            self.do('WRITE_IMM', length, at=HALF, key=0x55667788)
        for length in (1, 8, 1024, 1500, 3000, HALF, 0):
            self.do('READ', length, at=length % 7)
        self.do('FETCH_ADD', 8, operands=(5, 0))
        held = int.from_bytes(self.remote[:8], sys.byteorder)
        self.do('CMP_SWAP', 8, operands=(held, 9))
        self.do('CMP_SWAP', 8, operands=(held, 10))  # must not match any more
        for index in range(4):  # from here on, several at once
            self.post('READ', 3000, at=index * 4096, sink=index * 3072)
        for index in range(2):
            self.post('FETCH_ADD', 8, operands=(1, 0), sink=12288 + index * 8)
        self.post('WRITE', 3000)
        self.do('READ', 100, sink=12304, flags=e.IBV_SEND_FENCE)

    def uc(self):
        for length in (10, 3000):
            self.do('SEND', length)
            self.do('SEND_IMM', length, key=1)
            self.do('WRITE', length)
            self.do('WRITE_IMM', length, at=HALF, key=2)

    def ud(self):
        for length in (1, 10, 1024, 2048):
            self.do('SEND', length)
        self.do('SEND_IMM', 33, key=3)

    def inv(self):
        self.do('WRITE', 100, rkey=self.window)
        self.do('SEND_INV', 20, key=self.window)
        self.do('WRITE', 10, rkey=self.window, expect=e.IBV_WC_REM_ACCESS_ERR)

    def rnr(self):
        self.post('SEND', 3000)
        self.post('SEND', 10)
        self.channel.send('posted')
        self.wait()


class Case(NamedTuple):
    run: Callable
    type: int = e.IBV_QPT_RC
    access: int = LOCAL | READ | WRITE | ATOMIC  # what the server's QP allows
    receive: int = SLOT                          # length of the server's receives
    late: float = 0                              # seconds that they come after the client's posts
    window: bool = False                         # whether it binds a memory window


def failing(expect, operation, length, **details):
    return lambda client: client.do(operation, length, expect=expect, **details)


CASES = {
    'rc': Case(Client.rc),
    'uc': Case(Client.uc, type=e.IBV_QPT_UC),
    'ud': Case(Client.ud, type=e.IBV_QPT_UD),
    'inv': Case(Client.inv, window=True),
    'rnr': Case(Client.rnr, late=0.08),
    'badrkey': Case(failing(e.IBV_WC_REM_ACCESS_ERR, 'WRITE', 3000, rkey=0xdeadbe)),
    'badread': Case(failing(e.IBV_WC_REM_ACCESS_ERR, 'READ', 3000, rkey=0xdeadbe)),
    'oob': Case(failing(e.IBV_WC_REM_ACCESS_ERR, 'WRITE', 3000, at=2 * HALF - 100)),
    'misatomic': Case(failing(e.IBV_WC_REM_INV_REQ_ERR, 'FETCH_ADD', 8, at=4,
                              operands=(1, 0))),
    # rxe refuses it as an operational error, the specification and NICs as an invalid request.
    'toolong': Case(failing((e.IBV_WC_REM_OP_ERR, e.IBV_WC_REM_INV_REQ_ERR), 'SEND', 3000),
                    receive=100),
    'noaccess': Case(failing(e.IBV_WC_REM_INV_REQ_ERR, 'WRITE', 100), access=LOCAL | READ),
    'noatomic': Case(failing(e.IBV_WC_REM_INV_REQ_ERR, 'FETCH_ADD', 8, operands=(1, 0)),
                     access=LOCAL | READ | WRITE),
}


def serve_case(options, channel):
    name = channel.receive()
    print(f'case {name}')
    case = CASES[name]
    server = Server(options, case, channel, 0x100, case.access)
    with server.context:
        server.mr.write(TARGET_DATA, 2 * HALF, TARGET)
        window = server.bind_window() if case.window else None
        if not case.late:
            server.post_receives(case.receive)
        channel.send({'window': window})
        if case.late:
            channel.receive()
            time.sleep(case.late)
            server.post_receives(case.receive)
        channel.receive()
        channel.send(server.report())


def serve(options):
    with socket.create_server(('::', options.port), family=socket.AF_INET6,
                              dualstack_ipv6=True) as listener:
        print('listening')
        while True:
            with listener.accept()[0] as connection:
                try:
                    serve_case(options, Channel(connection))
                except (OSError, LookupError, TypeError, ValueError, PyverbsError) as error:
                    print(f'  {error!r}')


def run_case(options, name):
    """Run one case against the server; return the number of differences."""
    print(f'case {name}')
    with socket.create_connection((options.address, options.port), 60) as connection:
        channel = Channel(connection)
        channel.send(name)
        client = Client(options, CASES[name], channel, 0xfffff0, LOCAL)
        with client.context:
            print(f'  QP {client.qp.qp_num} to QP {client.peer["qpn"]}')
            client.channel, client.window = channel, channel.receive()['window']
            CASES[name].run(client)
            channel.send('done')
            report = channel.receive()
            client.check('received', report['received'], client.received)
            client.check('CRC of the target', report['crc'], zlib.crc32(client.remote))
            return client.differences


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('role', choices=('server', 'client'))
    parser.add_argument('address', nargs='?')
    parser.add_argument('cases', nargs='*', metavar='CASE', help=', '.join(CASES))
    parser.add_argument('--dev', default='rxe0')
    parser.add_argument('--gid', type=int, default=1,
                        help='index in the GID table: 0 is IPv6 link-local, 1 IPv4')
    parser.add_argument('--mtu', type=int, default=1024, choices=MTUS, help='path MTU')
    parser.add_argument('--port', type=int, default=18600)
    options = parser.parse_intermixed_args()
    sys.stdout.reconfigure(line_buffering=True)
    if options.role == 'server':
        serve(options)
    if not options.address or not set(options.cases) <= set(CASES):
        parser.error('client needs an ADDRESS, and cases of: ' + ' '.join(CASES))
    # rxe's library refuses to post misaligned atomics.
    names = options.cases or [name for name in CASES if name != 'misatomic']
    differences = sum([run_case(options, name) for name in names])
    print(f'{differences} differences' if differences else 'all as expected')
    sys.exit(1 if differences else 0)


if __name__ == '__main__':
    main()
