"""The cells of the matrix: a program, its arguments, and what its run may show."""

import dataclasses

import judge

GIDS = {"IPv6": 0, "IPv4": 1}
PERFTEST_PORT = 18515
PINGPONG_PORT = 18515
WIRE_PORT = 18600
NOTHING = judge.Expected()


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run. {server} and {client} in a command are addresses, {share} is this directory."""
    name: str
    server: str
    client: str
    port: int = 0               # the server listens on this TCP port when it is ready
    listens: bool = False       # or for rdma_cm's connections
    server_says: str = ""       # or says so
    expected: judge.Expected = NOTHING
    gid: str = "IPv4"
    mtu: int = 1024
    seconds: int = 60
    kill: str = ""              # who is killed: "client" or "server"
    client_fails: bool = False
    server_stays: bool = False  # it is killed when the client has ended
    full: bool = False          # only with --full
    kernels: tuple = ("6.1", "6.12")
    impaired: str = ""          # netem in the guest
    faults: str = ""            # at urxe
    client_faults: str = ""     # at urxe if that is the client
    output: str = ""            # must occur in the client's output
    has_golden: bool = False    # what both sides say is in golden/


def pingpongs(gid, mtu, full):
    common = f"-d rxe0 -g {GIDS[gid]} -n 20"
    programs = {"rc": f"-s 4096 -m {mtu} -c", "uc": f"-s 2000 -m {mtu} -c",
                "srq": f"-s 1000 -q 4 -m {mtu} -c"}
    if mtu == 1024:
        programs["ud"] = "-s 1000 -c"
    for kind, arguments in programs.items():
        command = f"ibv_{kind}_pingpong {common} {arguments}"
        yield Cell(f"ibv_{kind}_pingpong", command, f"{command} {{server}}", PINGPONG_PORT,
                   gid=gid, mtu=mtu, full=full)


def perftest(program, arguments, what, **details):
    mtu, gid = details.get("mtu", 1024), details.get("gid", "IPv4")
    command = f"{program} -d rxe0 -F -x {GIDS[gid]} -m {mtu} {arguments}"
    return Cell(f"{program} {what}", command, f"{command} {{server}}", PERFTEST_PORT, **details)


def bandwidths(gid, mtu, full):
    sizes = {"1 B": "-s 1 -n 100", "1 KiB": "-s 1024 -n 100", "64 KiB": "-s 65536 -n 20",
             "1 MiB": "-s 1048576 -n 5"}
    usual = ("1 B", "64 KiB") if mtu == 1024 and gid == "IPv4" else ("64 KiB",)
    for verb in ("send", "write", "read"):
        # Linux answers a READ for whose responses it has no room with an RNR NAK.
        crowded = frozenset(["RNR NAK"] if verb == "read" and mtu == 256 else [])
        more = {"gid": gid, "mtu": mtu, "expected": judge.Expected(crowded)}
        for size, arguments in sizes.items():
            yield perftest(f"ib_{verb}_bw", arguments, size, full=full or size not in usual, **more)
        yield perftest(f"ib_{verb}_bw", "-s 4096 -n 20 -q 8", "4 KiB, 8 QPs",
                       full=full or mtu != 1024 or gid != "IPv4", **more)


def latencies(gid, mtu, full):
    for verb in ("send", "write", "read"):
        for size in (8, 4096):
            yield perftest(f"ib_{verb}_lat", f"-s {size} -n 50", f"{size} B", gid=gid, mtu=mtu,
                           full=full or size != 8 or gid != "IPv4" or mtu != 1024)
    # Polling for a WRITE is not for events.
    for program in ("ib_send_bw", "ib_read_lat", "ib_send_lat"):
        yield perftest(program, "-s 4096 -n 50 -e", "4 KiB, events", gid=gid, mtu=mtu,
                       full=full or mtu != 1024 or gid != "IPv4" or program != "ib_send_bw")


def atomics(gid, full):
    for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        yield perftest("ib_atomic_bw", f"-A {kind} -n 50", kind, gid=gid, full=full)
        yield perftest("ib_atomic_lat", f"-A {kind} -n 20", kind, gid=gid,
                       full=full or kind == "CMP_AND_SWAP")


def wire(gid, mtu, full):
    # The cases that must fail, and those whose receives come late.
    naks = frozenset(["NAK 0", "NAK 1", "NAK 2", "NAK 3", "RNR NAK"])
    arguments = f"--gid {GIDS[gid]} --mtu {mtu}"
    return Cell("wire.py, all cases", f"/usr/bin/python3 {{share}}/wire.py server {arguments}",
                f"/usr/bin/python3 {{share}}/wire.py client {{server}} {arguments}", WIRE_PORT,
                expected=judge.Expected(naks, retransmissions=True, packets=140), gid=gid, mtu=mtu,
                seconds=240, server_stays=True, full=full, output="all as expected",
                has_golden=gid == "IPv4" and mtu == 1024)


def variants():
    """(GID, MTU, whether only with --full)."""
    for gid in GIDS:
        for mtu in (256, 1024, 4096):
            yield gid, mtu, mtu != 1024 and gid == "IPv6"


def connections():
    """Programs that connect through rdma_cm. IPv4 only: they are given the server's address."""
    def cell(name, server, client, **details):
        return Cell(name, server, client, **({"listens": True} | details))
    yield cell("rping", "rping -s -C 5 -V", "rping -c -a {server} -C 5 -V")
    yield cell("rping, 65,535 B", "rping -s -C 5 -V -S 65535",
               "rping -c -a {server} -C 5 -V -S 65535", full=True)
    yield cell("ucmatose", "ucmatose -c 2 -C 3", "ucmatose -s {server} -c 2 -C 3")
    yield cell("udaddy", "udaddy -c 2 -C 3", "udaddy -s {server} -c 2 -C 3")
    yield cell("rstream", "rstream -S 65536 -C 10 -I 3 -T v",
               "rstream -s {server} -S 65536 -C 10 -I 3 -T v")
    receiver = "stdbuf -oL mckey -m 239.1.2.3 -b {server} -C 10"
    yield cell("mckey", receiver, "mckey -m 239.1.2.3 -b {client} -C 10 -s", listens=False,
               server_says="joined dgid")
    # perftest's server listens anew for each connection, and the client does not wait for that: an
    # emulated processor would lose the race, so requests set out later.
    late = {"client_faults": "delay dir=tx qpn=1 by=1s", "seconds": 120}
    for verb in ("write", "read", "send"):
        command = f"ib_{verb}_bw -R -F -m 1024 -s 16384 -n 20"
        yield cell(f"ib_{verb}_bw -R", command, f"{command} {{server}}", full=verb != "write",
                   **late)
    # Somebody has to be there who says that nobody listens on the port.
    yield cell("rping, nobody listens", "rping -s -p 9998", "rping -c -a {server} -p 9999 -d",
               server_stays=True, client_fails=True, output="RDMA_CM_EVENT_REJECTED")
    broken = judge.Expected(retransmissions=True, losses=True)
    for victim in ("client", "server"):
        yield cell(f"rping, {victim} killed", "rping -s", "rping -c -a {server}", kill=victim,
                   expected=broken)


LOSSES = {"1 % loss": "loss 1%", "5 % loss": "loss 5%", "duplicates": "duplicate 5%",
          "reordering": "delay 2ms reorder 25% 50%"}
FAULTS = {"1 % loss": "drop p=0.01", "5 % loss": "drop p=0.05", "duplicates": "duplicate p=0.05",
          "reordering": "reorder p=0.05 packets=3"}


def lossy():
    """Impairments at either side."""
    expected = judge.Expected(frozenset(["NAK 0", "RNR NAK"]), True, True)
    programs = {
        "ib_write_bw": ("-s 16384 -n 50", PERFTEST_PORT),
        "ib_read_bw": ("-s 16384 -n 50", PERFTEST_PORT),
        "ib_send_bw": ("-s 16384 -n 50", PERFTEST_PORT),
        "ib_atomic_bw": ("-A FETCH_AND_ADD -n 50", PERFTEST_PORT),
    }
    for title, netem in LOSSES.items():
        for program, (arguments, port) in programs.items():
            command = f"{program} -d rxe0 -F -x 1 -m 1024 {arguments}"
            full = program != "ib_write_bw" and not (program == "ib_read_bw" and "5" in title)
            for where, details in ((f"{title} by netem", {"impaired": netem}),
                                   (f"{title} by --fault", {"faults": FAULTS[title]})):
                yield Cell(f"{program}, {where}", command, f"{command} {{server}}", port,
                           expected=expected, full=full, seconds=120, **details)


def all_cells():
    for gid, mtu, full in variants():
        yield from pingpongs(gid, mtu, full)
        yield from bandwidths(gid, mtu, full)
        yield from latencies(gid, mtu, full)
        if mtu == 1024:
            yield from atomics(gid, full or gid == "IPv6")
        yield wire(gid, mtu, full or mtu != 1024)
    yield from connections()
    yield from lossy()
