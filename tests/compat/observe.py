"""Looking at processes from outside, and waiting for what is seen."""

import os
import re
import time

from tests.compat import nodes
from tests.compat.pair import read


def costs(pid):
    """Of each thread: how often it was switched, and its CPU time in ticks."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        status = read(f"/proc/{pid}/task/{task}/status")
        switches = sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status)))
        stat = read(f"/proc/{pid}/task/{task}/stat").rsplit(")", 1)[1].split()
        found[task] = (switches, int(stat[11]) + int(stat[12]))
    return found


def datagrams_sent(pid):
    """UDP datagrams that were sent in the process's network namespace."""
    lines = re.findall(r"(?m)^Udp: (.*)$", read(f"/proc/{pid}/net/snmp"))
    v4 = dict(zip(lines[0].split(), lines[1].split()))["OutDatagrams"]
    v6 = re.search(r"(?m)^Udp6OutDatagrams\s+(\d+)$", read(f"/proc/{pid}/net/snmp6"))
    return int(v4) + (int(v6.group(1)) if v6 else 0)


def udp_sockets(pid, port):
    """Of the sockets with this local port: bytes that wait in them, and datagrams they lost."""
    waiting = lost = 0
    for name in ("udp", "udp6"):
        for line in read(f"/proc/{pid}/net/{name}").splitlines()[1:]:
            row = line.split()
            if row[1].endswith(f":{port:04X}"):
                waiting += int(row[4].split(":")[1], 16)
                lost += int(row[-1])
    return waiting, lost


def wait_until(condition, patience, what):
    deadline = time.monotonic() + patience * nodes.SLOWNESS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} does not happen")
        time.sleep(0.02)
