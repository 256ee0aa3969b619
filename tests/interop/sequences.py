"""What both sides of wire.py's cases say, step by step, in a form that can be compared.

A line is a packet: the client's requests with PSN (counted from the case's first), A if it asks for
an acknowledgement, SE if it is solicited; the server's answers with PSN, syndrome in hex, MSN.
Packets of one kind with consecutive PSNs share a line. What depends on time is left out: what is
sent again, and what follows a request that is refused.
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
        words += ["A"] * packet.ack_request + ["SE"] * packet.solicited
    return " ".join(words)


def lines_of(packets, origin):
    """The lines of one side."""
    steps = []
    for packet in packets:
        step = judge.ahead(packet.psn, origin), describe(packet)
        if step not in steps:
            steps.append(step)
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
    origin = requests[0].psn
    return {"client": lines_of(requests, origin), "server": lines_of(answers, origin)}


def sequences(packets, output, client_address):
    """All cases of one run of wire.py client."""
    return {case: sequence(packets, client, server, client_address)
            for case, (client, server) in cases_of(output).items()}


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


def differences(base, other):
    """[(case, side, line of base or None, line of other or None)] where they differ."""
    found = []
    for case, sides in base.items():
        for side, lines in sides.items():
            pairs = align(lines, other.get(case, {}).get(side, []))
            found += [(case, side, ours, theirs) for ours, theirs in pairs if ours != theirs]
    return found
