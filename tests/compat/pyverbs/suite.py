"""rdma-core's own Python tests: unpacked, run on an emulated device, and laid out as a table.

The tests come with Debian's python3-pyverbs, compressed; nothing of them is in this tree.
"""

import collections
import gzip
import json
import os
import pathlib
import re
import shutil

SOURCE = pathlib.Path("/usr/share/doc/rdma-core/tests")
EXPECTED = pathlib.Path(__file__).parent / "expected.txt"

# Why a test may be skipped, by a pattern of the reason that it gives.
VENDOR = "hardware of another vendor"
WHY = (
    (r"non MLX5 device|not an MLX5 device|PCI device must be passed", VENDOR),
    (r"non EFA device", VENDOR),
    (r"CUDA", "needs a GPU of another vendor"),
    (r"dmabuf is not supported", "librxe has no dmabuf, and the test needs a GPU's"),
    (r"Device memory", "librxe has no memory of the device to give out"),
    (r"XRCD", "librxe has no XRC"),
    (r"Raw Packet|QP type 8", "librxe's queues have no raw packets"),
    (r"Parent Domain", "librxe has no parent domains"),
    (r"Create Extended CQ", "librxe has no timestamps in completions"),
    (r"^Extended CQ", "librxe has no tag matching"),
    (r"Rereg MR", "librxe has no ibv_rereg_mr"),
    (r"real time", "librxe has no clock of the device"),
    (r"Importing a device", "librxe has no ibv_import_device"),
    (r"no huge pages", "this machine has no huge pages set apart"),
)
# Whether these are skipped depends on the machine.
MACHINE = re.compile(r"no huge pages|dmabuf|CUDA")


def why(reason):
    """The justification of a skip; None if there is none."""
    return next((text for pattern, text in WHY if re.search(pattern, reason)), None)


def missing():
    """Why the suite cannot be run; None if it can."""
    if not (SOURCE / "run_tests.py").exists():
        return f"no tests of rdma-core under {SOURCE}: install python3-pyverbs"
    return None


def unpack(folder):
    """Puts the tests into `folder`/tests; returns the script that runs them."""
    target = pathlib.Path(folder) / "tests"
    target.mkdir()
    for path in SOURCE.iterdir():
        if path.suffix == ".gz":
            with gzip.open(path) as packed, open(target / path.stem, "wb") as plain:
                shutil.copyfileobj(packed, plain)
        elif path.is_file():
            shutil.copy(path, target / path.name)
    os.chmod(target, 0o755)
    return target / "run_tests.py"


def read(path):
    """The outcomes, as {test: (outcome, reason)}. A test's first failure counts."""
    outcomes = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            known = outcomes.get(entry["test"])
            if known is None or known[0] in ("ok", "skip"):
                outcomes[entry["test"]] = (entry["outcome"], entry["reason"])
    return outcomes


def steady(reason):
    """A reason without what differs from machine to machine."""
    return re.sub(r"/dev/dri/\S+", "/dev/dri", " ".join(reason.split()))


def table(outcomes):
    """Tests by outcome and reason, most first."""
    groups = collections.defaultdict(list)
    for test, (outcome, reason) in outcomes.items():
        groups[(outcome, steady(reason))].append(test.removeprefix("tests."))
    lines = []
    order = sorted(groups, key=lambda key: (key[0] != "ok", key[0], -len(groups[key]), key[1]))
    for outcome, reason in order:
        tests = sorted(groups[(outcome, reason)])
        title = f"{outcome} {len(tests)}"
        if outcome == "skip":
            title += f": {why(reason) or 'UNJUSTIFIED'} ({reason})"
        elif reason:
            title += f": {reason}"
        lines += [title] + [f"    {test}" for test in tests] + [""]
    return "\n".join(lines)


def parse(text):
    """The outcomes that a table shows, as {test: (outcome, title)}."""
    outcomes = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("    "):
            outcomes[line.strip()] = (title.split(" ", 1)[0], title)
        else:
            title = line
    return outcomes


def differences(expected, found):
    """Tests whose outcome is another one, but for skips that the machine decides about."""
    result = []
    for test in sorted(expected.keys() | found.keys()):
        was, old_title = expected.get(test, ("absent", ""))
        now, title = found.get(test, ("absent", ""))
        machine = MACHINE.search(old_title) or MACHINE.search(title)
        either = {was, now}
        if was != now and not (machine and either <= {"ok", "skip"}):
            result.append(f"{test}: expected {was}, is {title or now}")
    return result
