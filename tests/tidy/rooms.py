"""Which room may include which, and what the sans-IO rooms may not touch (docs/architecture.md)."""

import re

from tests.tidy.rule import rule

# Room to the rooms that it may include besides itself. A room's name is the start of its paths.
ROOMS = {
    "net/wire": [],
    "net": ["net/wire"],
    "emulator": ["net/wire"],
    "verbs": ["net", "net/wire", "emulator"],
    "tools": ["net", "net/wire", "emulator", "verbs"],
    "tests": ["net", "net/wire", "emulator", "verbs", "tools"],
}
SANS_IO = ("net/wire", "emulator")
# The one place that prints: an assertion's last words.
ASSERTIONS = "emulator/assert.cc"

# All that a sans-IO room may include of others. Nothing of it can tell the time, roll dice, sleep,
# lock, print, or reach the network.
STANDARD = set("""
    algorithm any array bit bitset cassert cerrno charconv chrono cinttypes climits compare concepts
    cstddef cstdint cstdlib cstring deque exception functional initializer_list iterator limits list
    map memory memory_resource new numeric optional queue ranges set span stack stdexcept string
    string_view tuple type_traits unordered_map unordered_set utility variant vector
    tl/expected.hpp fmt/format.h fmt/core.h fmt/ranges.h
""".split())
BY_ROOM = {
    "net/wire": {"isa-l/crc.h",   # the CRC
                 "arpa/inet.h"},  # inet_pton and inet_ntop: addresses as text
    "emulator": set(),
}

# What gives a banned thing away in code, whatever was included.
BANNED = {
    "a clock": r"\b(steady|system|high_resolution|file|utc)_clock\b|\bclock_gettime\b"
               r"|\bgettimeofday\b|(?:^|[^\w.>:])(?:std::|::)?(?:time|clock)\s*\(",
    "a sleep": r"\bsleep_(for|until)\b|\b(nano|u)?sleep\s*\(",
    "a thread": r"\bstd::j?thread\b|\bthis_thread\b|\bpthread_\w+|\bthread_local\b|\bstd::async\b",
    "a lock": r"\bstd::(\w+_)?mutex\b|\bstd::condition_variable\w*"
              r"|\bstd::(lock_guard|unique_lock|scoped_lock)\b",
    "a random source": r"\brandom_device\b|\bmt19937\w*|\bdefault_random_engine\b"
                       r"|\bs?rand\s*\(|\bgetrandom\b|\barc4random\w*",
    "a socket": r"\bsocket\s*\(|\b(send|recv)m?msg\b|\bsendto\b|\brecvfrom\b|\b[gs]etsockopt\b",
    "a stream or a log": r"\bstd::(cout|cerr|clog|cin|[io]?fstream|[io]?stringstream)\b"
                         r"|\bfmt::v?print|\b[fsn]*printf\s*\(|\bf?puts\s*\(|\bperror\s*\("
                         r"|\bsyslog\s*\(",
    "the environment": r"\bgetenv\s*\(",
}


def room_of(path):
    """The innermost room that holds the path; None outside of all."""
    return max((room for room in ROOMS if path.startswith(room + "/")), key=len, default=None)


def fabric_of(path):
    """The folder of net/ that holds a file; None for what all fabrics share."""
    return path.split("/")[1] if path.count("/") > 1 else None


@rule("room", "cpp")
def check_rooms(source):
    room = room_of(source.path)
    for line, included, is_system in source.includes:
        target = room_of(included)
        if is_system or room is None or target is None:
            continue
        if target != room and target not in ROOMS[room]:
            yield line, f"{room} may not include {target}"
        elif room == target == "net" and fabric_of(included) not in (None, fabric_of(source.path)):
            yield line, "fabrics do not know each other, and what they share knows none of them"


@rule("include-path", "cpp")
def check_include_paths(source):
    for line, included, is_system in source.includes:
        if not is_system and room_of(included) is None:
            yield line, f'"{included}" is not a path from the root of the tree'


@rule("banned-include", "cpp")
def check_banned_includes(source):
    room = room_of(source.path)
    if room not in SANS_IO or source.path == ASSERTIONS:
        return
    for line, included, is_system in source.includes:
        if is_system and included not in STANDARD | BY_ROOM[room]:
            yield line, f"<{included}> is not on the list of what {room} may include"


@rule("banned-use", "cpp")
def check_banned_uses(source):
    if room_of(source.path) not in SANS_IO or source.path == ASSERTIONS:
        return
    for number, line in enumerate(source.code_lines, 1):
        for what, pattern in BANNED.items():
            match = re.search(pattern, line)
            if match:
                yield number, f"{what} ({match.group(0).strip()}) does not belong here"


@rule("cast", "cpp")
def check_casts(source):
    if room_of(source.path) not in SANS_IO:
        return
    for number, line in enumerate(source.code_lines, 1):
        match = re.search(r"\b(reinterpret|const)_cast\b", line)
        if match:
            yield number, f"{match.group(0)}: bytes are read through net/wire/bytes.h"


@rule("bitfield", "cpp")
def check_bitfields(source):
    if room_of(source.path) not in SANS_IO:
        return
    for number, line in enumerate(source.code_lines, 1):
        if re.match(r"\s*[\w:]+\s+\w+\s*:\s*\d+\s*[;={]", line):
            yield number, "a bitfield's place on the wire is the compiler's choice"


@rule("sleep-in-test", "cpp")
def check_sleeps_in_tests(source):
    if not source.in_folder("tests/unit"):
        return
    for number, line in enumerate(source.code_lines, 1):
        if re.search(BANNED["a sleep"], line):
            yield number, "unit tests use virtual time"
