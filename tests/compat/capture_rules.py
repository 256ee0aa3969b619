"""The rules that the packets of a capture must keep: PSNs, the order of opcodes, lengths, what
acknowledgements may say. Nothing here knows the C++ code.

A capture is taken at one end, so every answer stands behind what it answers. A queue pair's number
is in the packets to it only; which two belong together follows from what an answer's PSN answers.
"""

import dataclasses

MODULUS = 1 << 24
HALF = 1 << 23

# Opcodes of RC without the transport's bits; UC's are the same.
FIRST, MIDDLE, LAST, ONLY = "first", "middle", "last", "only"
SEND, WRITE = "SEND", "WRITE"
PLACES = {
    0x00: (SEND, FIRST), 0x01: (SEND, MIDDLE), 0x02: (SEND, LAST), 0x03: (SEND, LAST),
    0x04: (SEND, ONLY), 0x05: (SEND, ONLY), 0x06: (WRITE, FIRST), 0x07: (WRITE, MIDDLE),
    0x08: (WRITE, LAST), 0x09: (WRITE, LAST), 0x0A: (WRITE, ONLY), 0x0B: (WRITE, ONLY),
    0x16: (SEND, LAST), 0x17: (SEND, ONLY)}
READ_REQUEST, ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD = 0x0C, 0x11, 0x12, 0x13, 0x14
READ_RESPONSES = {0x0D: FIRST, 0x0E: MIDDLE, 0x0F: LAST, 0x10: ONLY}
ANSWERS = set(READ_RESPONSES) | {ACK, ATOMIC_ACK}
MAY_BE_SOLICITED = {0x02, 0x03, 0x04, 0x05, 0x09, 0x0B, 0x16, 0x17}
RC, UC, UD, CNP = 0, 1, 3, 4  # opcode >> 5
MTUS = (256, 512, 1024, 2048, 4096)


def distance(a, b):
    """How far b lies ahead of a, from -2^23 to 2^23 - 1."""
    return (b - a + HALF) % MODULUS - HALF


def after(psn, count):
    return (psn + count) % MODULUS


@dataclasses.dataclass
class Request:
    """A request packet that was sent, by its first PSN."""
    opcode: int
    psn: int
    count: int  # of PSNs
    length: int  # of the payload, or of a READ
    first_of_message: bool


@dataclasses.dataclass
class Flow:
    """All request packets to one queue pair."""
    transport: int
    next: int = None  # the PSN that a new packet has
    start: int = None
    message: str = None  # SEND or WRITE, if one is under way
    left: int = 0  # of a WRITE
    messages: int = 0
    requests: dict = dataclasses.field(default_factory=dict)  # PSN to Request
    reads: dict = dataclasses.field(default_factory=dict)  # each PSN of a READ to the Request
    answers_to: int = None  # the queue pair to which its answers go
    acknowledged: int = None
    msn: int = 0


class Rules:
    def __init__(self, packets, mtu=None):
        self.packets = packets
        self.mtu = mtu or find_mtu(packets)
        self.flows = {}  # (destination, source, QPN) to Flow
        self.datagram_psn = {}
        self.violations = []
        self.retransmissions = 0

    def check(self):
        for packet in self.packets:
            self.check_header(packet)
            transport = packet.opcode >> 5
            if transport == UD:
                self.check_datagram(packet)
            elif transport == RC and packet.opcode in ANSWERS:
                self.check_answer(packet)
            elif transport in (RC, UC):
                self.check_request(packet, transport)
        return self.violations

    def complain(self, packet, sentence):
        self.violations.append(f"{packet}: {sentence}")

    def check_header(self, packet):
        if packet.pkey != 0xFFFF:
            self.complain(packet, f"P_Key {packet.pkey:#06x}")
        if packet.solicited and packet.opcode & 0x1F not in MAY_BE_SOLICITED:
            self.complain(packet, "a solicited event in a packet that cannot ask for one")
        size = len(packet.payload)
        if packet.pad != -size % 4:
            self.complain(packet, f"{packet.pad} pad bytes behind {size} bytes")
        if packet.pad and any(packet.extensions[-packet.pad:]):
            self.complain(packet, "pad bytes that are not zero")

    def check_datagram(self, packet):
        """A UD queue pair numbers its datagrams, wherever they go."""
        key = (packet.source, packet.fields["deth.source"])
        before = self.datagram_psn.get(key)
        if before is not None and key[1] != 1 and packet.psn != after(before, 1):
            self.complain(packet, f"a datagram follows PSN {before:#08x}")
        self.datagram_psn[key] = packet.psn

    # --- requests

    def check_request(self, packet, transport):
        key = (packet.destination, packet.source, packet.qpn)
        flow = self.flows.setdefault(key, Flow(transport))
        if flow.next is None:
            flow.next = flow.start = packet.psn
        ahead = distance(flow.next, packet.psn)
        if ahead == 0:
            self.check_new(packet, flow)
        elif ahead > 0 or transport == UC or distance(flow.start, packet.psn) < 0:
            self.complain(packet, f"the next PSN is {flow.next:#08x}")
        else:
            self.check_again(packet, flow)

    def check_new(self, packet, flow):
        opcode = packet.opcode & 0x1F
        size = len(packet.payload)
        place = PLACES.get(opcode)
        first = place is None or place[1] in (FIRST, ONLY)
        if place is None and flow.message:
            self.complain(packet, f"within a {flow.message}")
        if place is not None:
            self.check_place(packet, flow, *place, size)
        length = packet.fields["reth.length"] if opcode == READ_REQUEST else size
        count = max(1, -(-length // self.mtu)) if opcode == READ_REQUEST else 1
        request = Request(opcode, packet.psn, count, length, first)
        flow.requests[packet.psn] = request
        if opcode == READ_REQUEST:
            for i in range(count):
                flow.reads[after(packet.psn, i)] = request
        flow.messages += first
        flow.next = after(packet.psn, count)

    def check_place(self, packet, flow, message, place, size):
        if place in (FIRST, ONLY) and flow.message:
            self.complain(packet, f"within a {flow.message}")
        if place in (MIDDLE, LAST) and flow.message != message:
            self.complain(packet, f"the message under way is {flow.message}")
        wrong = {FIRST: size != self.mtu, MIDDLE: size != self.mtu,
                 LAST: not 1 <= size <= self.mtu, ONLY: size > self.mtu}[place]
        if wrong:
            self.complain(packet, f"{size} bytes at an MTU of {self.mtu}")
        if message == WRITE:
            if place in (FIRST, ONLY):
                flow.left = packet.fields["reth.length"]
            flow.left -= size
            if flow.left < 0 or (place in (LAST, ONLY) and flow.left != 0):
                self.complain(packet, "the payloads do not add up to the RETH's length")
        flow.message = message if place in (FIRST, MIDDLE) else None

    def check_again(self, packet, flow):
        """A retransmission is what was sent before; a READ may ask for its rest only."""
        self.retransmissions += 1
        opcode = packet.opcode & 0x1F
        if opcode == READ_REQUEST:
            before = flow.reads.get(packet.psn)
            if before is None:
                self.complain(packet, "a READ where none was before")
                return
            wanted = before.length - distance(before.psn, packet.psn) * self.mtu
            if packet.fields["reth.length"] not in (wanted, min(wanted, self.mtu)):
                self.complain(packet, f"asks for {packet.fields['reth.length']} of {wanted} bytes")
            return
        before = flow.requests.get(packet.psn)
        if before is None or before.opcode != opcode or before.length != len(packet.payload):
            self.complain(packet, f"was sent before as {before}")

    # --- answers

    def check_answer(self, packet):
        flow = self.flow_answered_by(packet)
        if flow is None:
            self.complain(packet, "answers nothing that was sent")
            return
        if packet.opcode in READ_RESPONSES:
            self.check_read_response(packet, flow)
        elif packet.opcode == ATOMIC_ACK:
            request = flow.requests.get(packet.psn)
            if request is None or request.opcode not in (CMP_SWAP, FETCH_ADD):
                self.complain(packet, "answers no atomic operation")
        else:
            self.check_ack(packet, flow)
        if packet.opcode != 0x0E:
            self.check_msn(packet, flow)

    def flow_answered_by(self, packet):
        """The requests that an answer is for: by what was found before, else by the PSN."""
        candidates = [flow for (destination, source, _), flow in self.flows.items()
                      if flow.transport == RC and (destination, source) ==
                      (packet.source, packet.destination)]
        for flow in candidates:
            if flow.answers_to == packet.qpn and self.was_sent(flow, packet.psn):
                return flow
        for flow in candidates:
            if flow.answers_to is None and self.was_sent(flow, packet.psn):
                flow.answers_to = packet.qpn
                return flow
        return None

    @staticmethod
    def was_sent(flow, psn):
        return distance(flow.start, psn) >= 0 and distance(psn, flow.next) > 0

    def check_read_response(self, packet, flow):
        request = flow.reads.get(packet.psn)
        if request is None:
            self.complain(packet, "answers no READ")
            return
        index = distance(request.psn, packet.psn)
        size = len(packet.payload)
        expected = min(self.mtu, request.length - index * self.mtu)
        if size != expected:
            self.complain(packet, f"{size} bytes instead of {expected}")
        place = READ_RESPONSES[packet.opcode]
        if index == request.count - 1:
            good = place == (ONLY if request.count == 1 else LAST) or (
                place == ONLY and self.retransmissions)
        elif index == 0:
            good = place == FIRST or (place == ONLY and self.retransmissions)
        else:
            good = place == MIDDLE or (place in (FIRST, ONLY) and self.retransmissions)
        if not good:
            self.complain(packet, f"a {place} at {index + 1} of {request.count}")

    def check_ack(self, packet, flow):
        syndrome = packet.fields["aeth.syndrome"]
        kind = syndrome >> 5
        if kind == 0:
            before = flow.acknowledged
            if before is not None and distance(before, packet.psn) < 0:
                self.complain(packet, f"acknowledges less than {before:#08x} before")
            flow.acknowledged = packet.psn
        elif kind not in (1, 3) or (kind == 3 and syndrome & 0x1F > 4):
            self.complain(packet, f"syndrome {syndrome:#04x}")

    def check_msn(self, packet, flow):
        msn = packet.fields["aeth.msn"]
        if distance(flow.msn, msn) < 0 and packet.opcode == ACK:
            self.complain(packet, f"MSN {msn} after {flow.msn}")
        if distance(msn, flow.messages % MODULUS) < 0:
            self.complain(packet, f"MSN {msn}, but {flow.messages} messages were sent")
        if distance(flow.msn, msn) > 0:
            flow.msn = msn


def find_mtu(packets):
    """The path MTU: what FIRST and MIDDLE packets carry; else the least that all payloads fit."""
    largest = 0
    for packet in packets:
        opcode = packet.opcode & 0x1F
        if packet.opcode >> 5 not in (RC, UC):
            continue
        size = len(packet.payload)
        if PLACES.get(opcode, ("", ""))[1] in (FIRST, MIDDLE) or opcode in (0x0D, 0x0E):
            return size
        largest = max(largest, size)
    return next((mtu for mtu in MTUS if largest <= mtu), MTUS[-1])


def check(packets, mtu=None):
    """Sentences about packets that break a rule."""
    return Rules(packets, mtu).check()
