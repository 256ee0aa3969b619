"""What a capture of one run says about it: ICRCs, PSNs, retransmissions, NAKs."""

import collections
import dataclasses

PSN_MASK = 0xffffff
# An answer that was on the wire so long ago (seconds) has reached its program on a busy machine.
ARRIVED = 0.05
# No timer of a sender is shorter (seconds).
SHORTEST_TIMER = 0.0003
# Nor does it matter if so many, or this share of all, are sent again without need: on a busy
# machine a program may rest between its timer's start and the packet's way out.
FEW, SHARE = 3, 0.02
# Requests whose answer is data, and the answers that bring it.
FETCHING = ("READ_REQUEST", "CMP_SWAP", "FETCH_ADD")
FETCHED = ("READ_RESPONSE_FIRST", "READ_RESPONSE_MIDDLE", "READ_RESPONSE_LAST",
           "READ_RESPONSE_ONLY", "ATOMIC_ACK")


@dataclasses.dataclass(frozen=True)
class Expected:
    """What a run may show. A NAK is "NAK 0" to "NAK 4" or "RNR NAK"."""
    naks: frozenset = frozenset()
    retransmissions: bool = False
    losses: bool = False      # packets may be missing in the capture, doubled or out of order
    packets: int = 1          # at least so many


def ahead(psn, origin):
    """How far a PSN lies ahead of another: negative if behind."""
    distance = (psn - origin) & PSN_MASK
    return distance if distance < 1 << 23 else distance - (1 << 24)


class Requests:
    """The requests to one queue pair, and how far they were answered."""

    def __init__(self, first, mtu):
        self.first = self.next = first.psn
        self.mtu = mtu
        self.again = self.gaps = self.hasty = 0
        self.sent = {}      # PSN: when it was sent last
        self.answered = []  # (time, PSN) at which the answers got further
        self.fetches = []   # (first PSN, PSN behind) of requests whose answer is data, oldest first

    def take(self, packet):
        distance = ahead(packet.psn, self.next)
        self.gaps += distance > 0
        if distance < 0:
            self.again += 1
            self.hasty += self.is_hasty(packet)
        self.sent[packet.psn] = packet.time
        span = 1
        if packet.operation == "READ_REQUEST":
            span = max(1, -(-packet.dma_length // self.mtu))
        end = (packet.psn + span) & PSN_MASK
        if ahead(end, self.next) > 0:
            if packet.operation in FETCHING:
                self.fetches.append((packet.psn, end))
            self.next = end

    def is_hasty(self, packet):
        """Whether it is sent again though nobody could wait for its answer any more, or not yet."""
        for time, psn in self.answered:
            if ahead(psn, packet.psn) >= 0:
                return packet.time - time > ARRIVED
        return packet.time - self.sent.get(packet.psn, 0) < SHORTEST_TIMER

    def awaits(self, answer):
        return ahead(answer.psn, self.first) >= 0 > ahead(answer.psn, self.next)

    def take_answer(self, answer):
        if answer.nak() or self.lacks_data_before(answer):
            return
        if not self.answered or ahead(answer.psn, self.answered[-1][1]) > 0:
            self.answered.append((answer.time, answer.psn))

    def lacks_data_before(self, answer):
        """Whether data asked for earlier did not come: what follows has to be sent again."""
        done = self.answered[-1][1] if self.answered else self.first - 1
        while self.fetches and ahead(self.fetches[0][1] - 1, done) <= 0:
            del self.fetches[0]
        if not self.fetches:
            return False
        missing = self.fetches[0][0]
        if ahead(done + 1, missing) > 0:
            missing = done + 1
        if answer.operation in FETCHED:
            return ahead(answer.psn, missing) > 0
        return ahead(answer.psn, missing) >= 0


class Answers:
    """The answers to one queue pair."""

    def __init__(self):
        self.next = None  # the PSN of the next packet of a READ response
        self.gaps = 0

    def take(self, packet):
        if packet.operation in ("READ_RESPONSE_MIDDLE", "READ_RESPONSE_LAST"):
            self.gaps += self.next != packet.psn
        more = packet.operation in ("READ_RESPONSE_FIRST", "READ_RESPONSE_MIDDLE")
        self.next = (packet.psn + 1) & PSN_MASK if more else None


class Judge:
    """Takes the packets of a run in their order.

    `strict`: addresses of senders whose retransmissions and gaps are judged; without any, all have
    no gaps. Others send again too early, because Linux's rxe does not put off its timer when
    answers come, and drop what their slow guest has no room for.
    """

    def __init__(self, packets, strict=()):
        self.packets = packets
        self.strict = strict
        self.counts = collections.Counter()
        self.requests, self.answers = {}, {}
        self.naks = collections.Counter()
        self.stray = 0
        self.mtu = self.mtu_by_pair()
        for packet in packets:
            self.take(packet)

    def mtu_by_pair(self):
        """The path MTU between two addresses, by what FIRST and MIDDLE packets carry."""
        mtu = {}
        for packet in self.packets:
            if packet.has_exact_mtu:
                mtu[frozenset((packet.source, packet.destination))] = packet.payload
        return mtu

    def take(self, packet):
        self.counts["packets"] += 1
        self.counts["wrong ICRCs"] += not packet.icrc_is_right
        if packet.transport != "RC":
            return
        key = packet.source, packet.destination, packet.qpn
        if not packet.is_answer:
            if key not in self.requests:
                pair = frozenset(key[:2])
                self.requests[key] = Requests(packet, self.mtu.get(pair, 4096))
            self.requests[key].take(packet)
            return
        self.answers.setdefault(key, Answers()).take(packet)
        if packet.nak():
            self.naks[packet.nak()] += 1
        flow = self.flow_answered_by(packet)
        self.stray += flow is None
        if flow is not None:
            flow.take_answer(packet)

    def flow_answered_by(self, answer):
        """The other side's requests that the answer belongs to, by its PSN."""
        for (source, destination, _), flow in self.requests.items():
            if (source, destination) == (answer.destination, answer.source) and flow.awaits(answer):
                return flow
        return None

    def problems(self, expected):
        """What must not be, in words."""
        found = []
        if self.counts["packets"] < expected.packets:
            found.append(f"{self.counts['packets']} RoCEv2 packets, "
                         f"expected at least {expected.packets}")
        if self.counts["wrong ICRCs"]:
            found.append(f"{self.counts['wrong ICRCs']} wrong ICRCs")
        surprises = sorted(set(self.naks) - expected.naks)
        found += [f"{self.naks[nak]} times {nak}" for nak in surprises]
        strict = [flow for key, flow in self.requests.items() if key[0] in self.strict]
        hasty = sum(flow.hasty for flow in strict)
        few = max(FEW, SHARE * sum(len(flow.sent) for flow in strict))
        if hasty > few and not expected.retransmissions:
            found.append(f"{hasty} requests sent again without need")
        if expected.losses:
            return found
        gaps = self.gaps(self.requests)
        if gaps:
            found.append(f"{gaps} gaps in the PSNs of requests")
        gaps = self.gaps(self.answers)
        if gaps:
            found.append(f"{gaps} gaps in the PSNs of READ responses")
        if self.stray:
            found.append(f"{self.stray} answers that nobody asked for")
        return found

    def gaps(self, flows):
        """Of the senders that are judged."""
        return sum(flow.gaps for (source, _, _), flow in flows.items()
                   if not self.strict or source in self.strict)

    def retransmissions(self):
        return sum(flow.again for flow in self.requests.values())

    def summary(self):
        """The numbers that the table shows."""
        return {"packets": self.counts["packets"], "sent again": self.retransmissions(),
                "naks": dict(self.naks)}
