"""Debian's rdma_cm programs on urxe, unmodified: programs.py WORLD [CASE...]"""

import contextlib
import dataclasses
import filecmp
import os
import re
import select
import subprocess
import sys
import time

from tests.compat import nodes, pair, suite

PORT_SPACES = {"tcp": 0x0106, "udp": 0x0111, "ib": 0x013F}
ROCE_PORT = 4791


@dataclasses.dataclass(frozen=True)
class Case:
    server: str
    client: str
    port: int
    space: str = "tcp"
    says: str = ""  # a pattern that one of them must print
    server_ends: bool = True  # by itself, with status 0
    clients: int = 1
    v6: bool = False
    client_may_end: tuple = (0,)  # with these


def both_ends(command, port=7471):
    """A program whose two ends want the same options."""
    return Case(command, f"{command} -s S", port, says=r"(?m)\d\.\d\d$")


# A program of ordinary sockets, which librdmacm's library turns into its own.
RSOCKETS = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"
*SANITIZER, LIBRARY = nodes.PRELOAD.split(":")
ECHO = (f"env LD_PRELOAD={':'.join([*SANITIZER, RSOCKETS, LIBRARY])} "
        f"{nodes.BUILD}/tests/socket_echo")

# All that qperf connects by rdma_cm.
QPERF = ("rc_lat rc_bw rc_bi_bw rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap "
         "ver_rc_fetch_add rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat "
         "rc_rdma_write_poll_lat")

# In commands: S is the server's address, C the client's. udpong is missing: the datagram sockets of
# librdmacm make address handles without a GRH, which no RoCE device takes.
CASES = {
    "rping": Case("rping -s -a S -v -V -C 20", "rping -c -a S -v -V -C 20", 7174,
                  says="ping data: rdma-ping-19"),
    "rping-wildcard": Case("rping -s -C 10", "rping -c -a S -I C -C 10", 7174),
    "rping-sizes": Case("rping -s -a S -V -S 60000 -C 5", "rping -c -a S -V -S 60000 -C 5", 7174),
    "rping-persistent": Case("rping -s -P -a S", "rping -c -a S -V -C 5", 7174,
                             server_ends=False, clients=8),
    "rping-own-qp": Case("rping -s -q -a S -C 5", "rping -c -q -a S -V -C 5", 7174),
    "rping-v6": Case("rping -s -a S -V -C 10", "rping -c -a S -V -C 10", 7174, v6=True),
    "ucmatose": Case("ucmatose -c 100", "ucmatose -s S -c 100", 7471, says="test complete"),
    "ucmatose-bind": Case("ucmatose -b S", "ucmatose -s S -b C", 7471, says="return status 0"),
    "ucmatose-migrate": Case("ucmatose -m", "ucmatose -s S -m", 7471, says="return status 0"),
    "ucmatose-options": Case("ucmatose -a 20 -t 104 -C 20 -S 2000",
                             "ucmatose -s S -a 20 -t 104 -C 20 -S 2000", 7471,
                             says="return status 0"),
    "ucmatose-ib": Case("ucmatose -P ib -b S", "ucmatose -s S -P ib", 7471, space="ib",
                        says="return status 0"),
    "ucmatose-v6": Case("ucmatose -b S -f ipv6", "ucmatose -s S -f ipv6", 7471, v6=True,
                        says="return status 0"),
    "udaddy": Case("udaddy", "udaddy -s S", 7174, space="udp", says="return status 0"),
    "udaddy-many": Case("udaddy -c 10 -b S -S 1000", "udaddy -s S -c 10 -S 1000", 7174, space="udp",
                        says="return status 0"),
    "rdma_client": Case("rdma_server -s S", "rdma_client -s S", 7471, says="rdma_client: end 0"),
    "cmtime": Case("cmtime -c 1000", "cmtime -s S -c 1000", 7471, says="disconnect",
                   server_ends=False),
    "rstream": both_ends("rstream -S 64 -C 1 -I 2000"),
    "rstream-verify": both_ends("rstream -T v -S 65536 -C 100"),
    # The server hangs up after its last byte. Poll says so, and rstream takes that for a failure,
    # although it has not read that byte yet.
    "rstream-async": dataclasses.replace(both_ends("rstream -T a -S 4096 -C 1 -I 1000"),
                                         client_may_end=(0, select.POLLHUP)),
    "rstream-nonblocking": both_ends("rstream -T n -T v -S 100000 -C 100"),
    "rstream-blocking": both_ends("rstream -T b -T v -S 100000 -C 100"),
    "rstream-resolve": both_ends("rstream -T r -T v -S 4096 -C 100"),
    "riostream": both_ends("riostream -S 4096 -C 1 -I 100"),
    "riostream-verify": both_ends("riostream -T v -S 65536 -C 100"),
    "riostream-blocking": both_ends("riostream -T b -T v -S 65536 -C 100"),
    "rsocket-preload": Case(f"{ECHO} server S", f"{ECHO} client S", 7472,
                            says="the same came back"),
    "qperf": Case("qperf", f"qperf S -cm 1 -t 1 {QPERF}", 19765, space="socket",
                  server_ends=False, says="rc_rdma_write_poll_lat"),
}
for tool in ("send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat", "atomic_bw",
             "atomic_lat"):
    count = "-n 1000" if tool.endswith("lat") else "-n 1000 -s 8192"
    if tool.startswith("atomic"):
        count = "-n 1000"
    CASES[f"ib_{tool}"] = Case(f"ib_{tool} -R -p 18515 {count}", f"ib_{tool} -R -p 18515 {count} S",
                               18515, says="#bytes")
for tool in ("send_bw", "send_lat"):
    CASES[f"ib_{tool}-ud"] = Case(f"ib_{tool} -R -c UD -p 18515 -n 500 -s 1024",
                                  f"ib_{tool} -R -c UD -p 18515 -n 500 -s 1024 S", 18515,
                                  says="#bytes")


def address_of(node, v6):
    if not v6:
        return node.address
    command = list(node.prefix) + ["ip", "-6", "-o", "address", "show", "scope", "global"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    match = re.search(r"inet6 ([0-9a-f:]+)", text)
    return match.group(1) if match else "::1"


def listens(node, case):
    """Whether somebody has claimed the case's service, or listens on TCP where that comes first."""
    if case.space == "socket":  # one of the kernel's
        text = "".join(read_in(node, f"/proc/net/{kind}") for kind in ("tcp", "tcp6"))
        return f":{case.port:04X} " in text
    service = PORT_SPACES[case.space] << 16 | case.port
    return f"urxe/name/cm/{service:016x}/" in read_in(node, "/proc/net/unix")


def read_in(node, path):
    return subprocess.run(list(node.prefix) + ["cat", path], capture_output=True, text=True,
                          check=True, timeout=20).stdout


def wait_until(condition, process, seconds=20):
    deadline = time.monotonic() + seconds * nodes.SLOWNESS
    while time.monotonic() < deadline and process.poll() is None:
        if condition():
            return True
        time.sleep(0.02)
    return False


def words(text, case, world):
    server, client = (address_of(node, case.v6) for node in (world.server, world.client))
    return [{"S": server, "C": client}.get(word, word) for word in text.split()]


# A thread of rping may ask for one more event when the other has closed the channel already.
RPING_RACE = "rdma_get_cm_event: Bad file descriptor"


def run_case(name, case, world, runner):
    server_command = words(case.server, case, world)
    client_command = words(case.client, case, world)
    with contextlib.ExitStack() as stack:
        server, end_server = stack.enter_context(
            runner.started(world.server, server_command, f"{name}-server"))
        assert wait_until(lambda: listens(world.server, case), server), \
            f"the server does not listen\n{end_server()}"
        started = []
        for number in range(case.clients):
            # rping's server keeps a request in one place until another thread of it has looked: two
            # that come at once are one to it, on any device.
            time.sleep(0.2 * nodes.SLOWNESS if number > 0 else 0)
            started.append(stack.enter_context(
                runner.started(world.client, client_command, f"{name}-client-{number}")))
        finished = [finish() for _, finish in started]
        if not case.server_ends:
            pair.linger(server, 0.1)
        elif any(end.status != 0 for end in finished):
            pair.linger(server, 2)
        ended = end_server()
    text = "\n".join(str(end) for end in [ended] + finished)
    assert all(end.status in case.client_may_end for end in finished), f"a client failed\n{text}"
    assert not case.server_ends or ended.status == 0 or RPING_RACE in ended.output, \
        f"the server failed\n{text}"
    assert re.search(case.says, ended.output + finished[0].output), f"no {case.says!r}\n{text}"
    assert "rror" not in finished[0].output, f"it speaks of an error\n{text}"


def run_mckey(world, runner):
    """Two receivers and a sender of one group."""
    group = "239.10.20.30"
    with contextlib.ExitStack() as stack:
        receivers = [stack.enter_context(runner.started(
            node, ["mckey", "-m", group, "-b", node.address], f"mckey-{number}"))
                     for number, node in enumerate((world.server, world.client))]
        time.sleep(1 * nodes.SLOWNESS)
        _, end_sender = stack.enter_context(runner.started(
            world.client, ["mckey", "-m", group, "-b", world.client.address, "-s"], "mckey-send"))
        sent = end_sender()
        finished = [end() for _, end in receivers]
    text = "\n".join(str(end) for end in [sent] + finished)
    assert all(end.status == 0 for end in [sent] + finished), text
    assert all("return status 0" in end.output for end in finished), text


def run_rcopy(world, runner):
    """A file of 100 MB."""
    source = os.path.join(runner.folder, "source")
    target = os.path.join(runner.folder, "target")
    subprocess.run(["dd", "if=/dev/urandom", f"of={source}", "bs=1M", "count=100"], check=True,
                   capture_output=True, timeout=100)
    case = Case("rcopy", f"rcopy {source} {world.server.address}:{target}", 7427, server_ends=False)
    run_case("rcopy", case, world, runner)
    assert filecmp.cmp(source, target, shallow=False), "the copy differs"


@contextlib.contextmanager
def bystander(world, runner):
    """Somebody who has the device at the server's address open, and listens to something else."""
    command = words("rping -s -a S -p 7999", Case("", "", 0), world)
    with runner.started(world.server, command, "bystander") as (process, _):
        deadline = time.monotonic() + pair.PATIENCE * nodes.SLOWNESS
        while not pair.holds_udp_port(process.pid, ROCE_PORT):
            assert process.poll() is None and time.monotonic() < deadline, "no bystander"
            time.sleep(0.02)
        yield


def run_refused(world, runner):
    """A client without a server learns of it soon."""
    client = words("rping -c -a S -C 1", Case("", "", 0), world)
    with bystander(world, runner):
        started = time.monotonic()
        refused = runner.alone(client, world.client)
    assert "RDMA_CM_EVENT_REJECTED, error 8" in refused.output, refused
    assert time.monotonic() - started < 5 * nodes.SLOWNESS, "the refusal was late"


COUNTING = """
import sys
import pyverbs.cm_enums as ce
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QPCap, QPInitAttr

def counter(path):
    with open(f"/sys/class/infiniband/rxe0/ports/1/{path}", encoding="ascii") as file:
        return int(file.read())

info = AddrInfo(src=None, dst=sys.argv[1], dst_service="7998", port_space=ce.RDMA_PS_TCP)
cmid = CMID(creator=info, qp_init_attr=QPInitAttr(cap=QPCap(max_recv_wr=1)))
try:
    cmid.connect()
except PyverbsRDMAError as error:
    print(error)
print({path: counter(path) for path in ("cm_tx_msgs/req", "cm_rx_msgs/rej", "cm_tx_msgs/rtu")})
"""


def run_counters(world, runner):
    """The messages of a connection that is refused are counted in sysfs."""
    with bystander(world, runner):
        end = runner.alone(["/usr/bin/python3", "-c", COUNTING, world.server.address],
                           world.client)
    assert "{'cm_tx_msgs/req': 1, 'cm_rx_msgs/rej': 1, 'cm_tx_msgs/rtu': 0}" in end.output, end


SPECIAL = {"counters": run_counters, "mckey": run_mckey, "rcopy": run_rcopy, "refused": run_refused}

# All sizes that they know: minutes. Run only when they are named.
LONG = {
    "rstream-series": both_ends("rstream"),
    "rstream-all": both_ends("rstream -S all"),
    "rstream-all-blocking": both_ends("rstream -T b"),
    "riostream-all": both_ends("riostream"),
}


def case_of(name):
    """A function of the world and a runner."""
    if name in SPECIAL:
        return SPECIAL[name]
    return lambda world, runner: run_case(name, (CASES | LONG)[name], world, runner)


def main():
    world_name, names = sys.argv[1], sys.argv[2:]
    patience = pair.PATIENCE * (10 if names else 1)
    has_v6 = world_name.startswith("netns")
    everything = [name for name, case in CASES.items() if has_v6 or not case.v6]
    cases = [(name, case_of(name)) for name in names or everything + list(SPECIAL)]
    return suite.run(world_name, cases, patience)


if __name__ == "__main__":
    sys.exit(main())
