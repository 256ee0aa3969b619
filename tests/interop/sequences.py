"""What both sides of wire.py's cases say, step by step, in a form that can be compared.

A line is a packet: the client's requests with PSN (counted from the case's first), A if it asks for
an acknowledgement, SE if it is solicited; the server's answers with PSN, syndrome in hex, MSN.
Packets of one kind with consecutive PSNs share a line. What depends on time is left out: what is
sent again, what follows a request that is refused, and acknowledgements asked for within a message
(urxe does so for every quarter of its window), with the answers. One acknowledgement may stand for
several.
"""

import difflib
import itertools
import re

import judge

COMBINATIONS = ("rxe-rxe", "urxe-rxe", "rxe-urxe", "urxe-urxe")  # client-server
CASE = re.compile(r"^case (\w+)\n  QP (\d+) to QP (\d+)$", re.MULTILINE)


def cases_of(output):
    """wire.py client's output to {case: (client's QPN, server's QPN)}."""
    return {case: (int(client), int(server)) for case, client, server in CASE.findall(output)}


def describe(packet):
    """A packet without its PSN."""
    words = [packet.operation]
    if packet.is_answer:
        if packet.syndrome is not None:
            words += [f"{packet.syndrome:02x}", f"msn {packet.msn}"]
    else:
        asks = packet.ack_request and not packet.has_exact_mtu
        words += ["A"] * asks + ["SE"] * packet.solicited
    return " ".join(words)


def lines_of(packets, origin):
    """The lines of one side, each packet as it was sent first."""
    steps, seen = [], set()
    for packet in packets:
        key = packet.psn, packet.operation, packet.nak()
        if key not in seen:
            steps.append((judge.ahead(packet.psn, origin), describe(packet)))
        seen.add(key)
    lines = []
    for _, group in itertools.groupby(enumerate(steps), lambda item: (item[1][0] - item[0],
                                                                      item[1][1])):
        found = [step for _, step in group]
        (first, text), last = found[0], found[-1][0]
        lines.append(f"+{first} {text}" if first == last else f"+{first}..+{last} {text}")
    return lines


def refused_at(answers):
    """The PSN of the request that was refused for good; None if none was."""
    refusals = ("NAK 1", "NAK 2", "NAK 3")
    return next((p.psn for p in answers if p.nak() in refusals), None)


def sequence(packets, client_qpn, server_qpn, client_address):
    """One case's lines: {"client": [...], "server": [...]}."""
    requests = [p for p in packets if not p.is_answer
                and p.source == client_address and p.qpn == server_qpn]
    answers = [p for p in packets if p.is_answer
               and p.destination == client_address and p.qpn == client_qpn]
    if not requests:
        return {"client": [], "server": []}
    end = refused_at(answers)
    if end is not None:
        requests = [p for p in requests if judge.ahead(p.psn, end) <= 0]
    within = {p.psn for p in requests if p.has_exact_mtu}
    answers = [p for p in answers if p.nak() or p.operation != "ACK" or p.psn not in within]
    origin = requests[0].psn
    return {"client": lines_of(requests, origin), "server": lines_of(answers, origin)}


def sequences(packets, output, client_address):
    """All cases of one run of wire.py client."""
    found, cases = {}, list(cases_of(output).items())
    for index, (case, (client, server)) in enumerate(cases):
        # Numbers of queue pairs come again: what belongs to a case ends where the next one begins.
        next_server = cases[index + 1][1][1] if index + 1 < len(cases) else None
        end = next((place for place, packet in enumerate(packets)
                    if packet.source == client_address and packet.qpn == next_server
                    and next_server != server), len(packets))
        found[case] = sequence(packets[:end], client, server, client_address)
        packets = packets[end:]
    return found


def write(cases):
    """The text of a golden file."""
    text = ""
    for case, sides in cases.items():
        for side, lines in sides.items():
            text += f"{case} {side}\n" + "".join(f"  {line}\n" for line in lines)
    return text


def read(text):
    """What was written."""
    cases, lines = {}, None
    for line in text.splitlines():
        if line.startswith("  "):
            lines.append(line.strip())
        elif line and not line.startswith("#"):
            case, side = line.split()
            lines = cases.setdefault(case, {}).setdefault(side, [])
    return cases


def align(base, other):
    """(line of base or None, line of other or None) in the order of both."""
    matcher = difflib.SequenceMatcher(None, base, other, autojunk=False)
    for kind, base_from, base_to, other_from, other_to in matcher.get_opcodes():
        if kind == "replace" and base_to - base_from != other_to - other_from:
            yield from ((line, None) for line in base[base_from:base_to])
            yield from ((None, line) for line in other[other_from:other_to])
        else:
            yield from itertools.zip_longest(base[base_from:base_to], other[other_from:other_to])


ACK = re.compile(r"\+(\d+) ACK 1f msn \d+")


def without_coalesced(lines, others):
    """The lines but for acknowledgements of PSNs that the others do not acknowledge one by one."""
    psns = {match[1] for match in map(ACK.fullmatch, others) if match}
    return [line for line in lines
            if not (match := ACK.fullmatch(line)) or match[1] in psns]


def differences(base, other):
    """[(case, side, line of base or None, line of other or None)] where they differ."""
    found = []
    for case, sides in base.items():
        for side, lines in sides.items():
            others = other.get(case, {}).get(side, [])
            pairs = align(without_coalesced(lines, others), without_coalesced(others, lines))
            found += [(case, side, ours, theirs) for ours, theirs in pairs if ours != theirs]
    return found
