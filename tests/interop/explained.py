"""Where urxe and rxe differ step by step in wire.py's cases, and why."""

import dataclasses
import re

import sequences

HEADER = """\
# Where the sides of wire.py's cases (client-server) differ from rxe-rxe, step by step; what all
# have in common is in rxe-rxe.txt. "=": as rxe-rxe; "-": nothing. Numbers: reasons, at the end.
# Made by tests/interop/compare.
"""


@dataclasses.dataclass(frozen=True)
class Reason:
    """Lines of the cases that `rxe` (said by rxe-rxe alone) or `other` (the rest) match."""
    cases: str
    rxe: str
    other: str
    text: str

    def covers(self, case, rxe, other):
        return (re.fullmatch(self.cases, case) and re.fullmatch(self.rxe, rxe or "-")
                and re.fullmatch(self.other, other or "-"))


REASONS = (
    Reason("rnr", r"\+0 ACK 60 msn 0", "-",
           "After an RNR NAK rxe says of the packets that follow that they are out of sequence. "
           "urxe, as the specification asks, says nothing until the request comes again."),
    Reason("toolong", r"\+\d+ ACK 63 msn 0", r"\+\d+ ACK 61 msn 0",
           "A SEND that exceeds the receive request: rxe answers remote operational error, urxe "
           "invalid request, as the specification and NICs do."),
)


def reason_number(case, rxe, other):
    """The number of the reason for a difference, from 1; None if there is none."""
    for number, reason in enumerate(REASONS, 1):
        if reason.covers(case, rxe, other):
            return number
    return None


def rows_of(golden):
    """{(case, side, line of rxe-rxe, occurrence): {combination: line}} of what differs."""
    rows = {}
    for combination in sequences.COMBINATIONS[1:]:
        seen = {}
        found = sequences.differences(golden["rxe-rxe"], golden.get(combination, {}))
        for case, side, rxe, other in found if combination in golden else ():
            seen[case, side, rxe] = seen.get((case, side, rxe), 0) + 1
            rows.setdefault((case, side, rxe, seen[case, side, rxe]), {})[combination] = other
    return rows


def side_by_side(golden):
    """The text of the golden file, and the differences that nothing explains."""
    columns = [name for name in sequences.COMBINATIONS if name in golden]
    lines, unexplained, used = [], [], set()
    heads = [f"{name:<32}" for name in columns]
    lines.append("".join([f"{'case':<10}{'side':<8}", *heads]).rstrip())
    for (case, side, rxe, _), others in sorted(rows_of(golden).items(), key=str):
        numbers = {name: reason_number(case, rxe, line) for name, line in others.items()}
        unexplained += [f"{name}, {case}, {side}: {others[name] or '-'} instead of {rxe or '-'}"
                        for name, number in numbers.items() if number is None]
        used |= set(numbers.values()) - {None}
        cells = [f"{rxe or '-':<32}"]
        for name in columns[1:]:
            text = (others[name] or "-") + f" [{numbers[name]}]" if name in others else "="
            cells.append(f"{text:<32}")
        lines.append("".join([f"{case:<10}{side:<8}", *cells]).rstrip())
    reasons = [f"[{number}] {REASONS[number - 1].text}" for number in sorted(used)]
    return HEADER + "\n".join([*lines, "", *reasons]) + "\n", unexplained
