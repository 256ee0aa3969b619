"""What a tidy rule is, and the list of all of them."""

import typing

RULES = {}


class Violation(typing.NamedTuple):
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


def rule(name, *kinds):
    """Makes a rule of a generator of (line number, message) over one Source of these kinds."""
    def register(check):
        assert name not in RULES
        RULES[name] = (kinds, check)
        return check
    return register


def violations_in(source):
    for name, (kinds, check) in RULES.items():
        if not kinds or source.kind in kinds:
            for line, message in check(source):
                yield Violation(source.path, line, name, message)
