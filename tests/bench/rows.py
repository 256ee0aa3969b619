"""What is measured: the rows of the table in docs/performance.md."""

import statistics

from tests.bench.machine import LOOPBACK, Failed

# UDP payload of a packet: BTH, data, ICRC; the first of a WRITE has 16 bytes more.
PACKET_4096, PACKET_1024, PACKET_WRITE_64 = 4112, 1040, 96
PACKET_8 = 24  # a SEND of eight bytes


# --- what a measurement of ours is: a function of the machine that returns a number

def bandwidth(name, *arguments, iterations, place=None, **more):
    def measure(machine):
        where = machine.over_veth() if place == "veth" else LOOPBACK
        count = max(int(iterations * machine.share), 5)
        columns, _ = machine.perftest(name, "--report_gbits", "-n", count, *arguments,
                                      place=where, **more)
        return columns[3]
    return measure


def message_rate(name, *arguments, iterations):
    def measure(machine):
        count = int(iterations * machine.share)
        columns, _ = machine.perftest(name, "--report_gbits", "-n", count, *arguments)
        return columns[4]
    return measure


def latency(name, *arguments, iterations=20000):
    def measure(machine):
        columns, _ = machine.perftest(name, "-n", int(iterations * machine.share), *arguments)
        return columns[4]
    return measure


def cpu_per_gigabyte(name, size, iterations, *arguments):
    def measure(machine):
        count = int(iterations * machine.share)
        # What starting and ending costs is not of the transfer.
        _, begin_and_end = machine.perftest(name, "-s", size, "-n", 5, *arguments)
        _, all_of_it = machine.perftest(name, "-s", size, "-n", count, *arguments)
        return (all_of_it - begin_and_end) / (size * (count - 5) * 1e-9)
    return measure


def program(field, name, *arguments):
    return lambda machine: machine.program(name, *arguments)[field]


# --- yardsticks

def yardstick(field, kind, factor=1.0, place=None, **options):
    def measure(machine):
        where = machine.over_veth() if place == "veth" else LOOPBACK
        return machine.yardstick(kind, where, **options)[field] * factor
    return measure


UDP = yardstick("gbps", "udp-gso", size=PACKET_4096)
UDP_VETH = yardstick("gbps", "udp-gso", size=PACKET_1024, place="veth")
UDP_SINGLE = yardstick("gbps", "udp-mmsg", size=PACKET_4096)
UDP_SMALL = yardstick("mpps", "udp-mmsg", size=PACKET_WRITE_64)
TCP_256 = yardstick("gbps", "tcp", size=262144)
TCP_64_BLOCKING = yardstick("gbps", "tcp", size=65536, server_wait="block")
TCP_CPU = yardstick("cpu_s_per_gb", "tcp", size=65536, server_wait="block")


def ping_pong(client_wait, server_wait, factor):
    return yardstick("typical_us", "udp-pingpong", factor, size=PACKET_8,
                     client_wait=client_wait, server_wait=server_wait)


# perftest gives half of a round trip for SEND and WRITE, and the whole for READ.
SPIN, BLOCK, FLAG = (ping_pong(wait, wait, 0.5) for wait in ("spin", "block", "flag"))
SPIN_BOTH_WAYS = ping_pong("spin", "spin", 1.0)
SPIN_AND_BLOCK = ping_pong("spin", "block", 1.0)

WRITE_64K = bandwidth("ib_write_bw", "-s", 65536, "-m", 4096, iterations=100_000)
READ_64K = bandwidth("ib_read_bw", "-s", 65536, "-m", 4096, iterations=100_000)
SEND_64K = bandwidth("ib_send_bw", "-s", 65536, "-m", 4096, iterations=100_000)
MANY_QPS = ("-s", 65536, "-m", 4096, "-t", 4)


class Ratio:
    """A measurement in turn with a yardstick; the target is a bound of their ratio."""

    def __init__(self, name, unit, ours, against, theirs, target):
        self.name, self.unit, self.ours = name, unit, ours
        self.against, self.theirs = against, theirs
        self.comparison, self.target = target.split()

    def measure(self, machine, pairs):
        result = {"name": self.name, "unit": self.unit, "against": self.against,
                  "target": f"{self.comparison} {self.target}"}
        ours, theirs = [], []
        try:
            for _ in range(pairs):
                theirs.append(self.theirs(machine))
                ours.append(self.ours(machine))
        except Failed as failure:
            return {**result, "error": str(failure)}
        ratios = [our / their for our, their in zip(ours, theirs)]
        ratio = statistics.median(ratios)
        met = ratio >= float(self.target) if self.comparison == ">=" else (
            ratio <= float(self.target))
        return {**result, "ours": statistics.median(ours), "theirs": statistics.median(theirs),
                "ratio": ratio, "lowest": min(ratios), "highest": max(ratios), "met": met,
                "all_ours": ours, "all_theirs": theirs}


class Bound:
    """A measurement whose target is a number of its own."""

    def __init__(self, name, unit, ours, most, pairs=None):
        self.name, self.unit, self.ours, self.most, self.pairs = name, unit, ours, most, pairs

    def measure(self, machine, pairs):
        result = {"name": self.name, "unit": self.unit, "target": f"<= {self.most} {self.unit}"}
        try:
            values = [self.ours(machine) for _ in range(self.pairs or pairs)]
        except Failed as failure:
            return {**result, "error": str(failure)}
        middle = statistics.median(values)
        return {**result, "ours": middle, "lowest": min(values), "highest": max(values),
                "met": middle <= self.most, "all_ours": values}


WRITE_1M = bandwidth("ib_write_bw", "-s", 1 << 20, "-m", 4096, iterations=6000)
ROWS = [
    Ratio("write 64 KiB", "Gb/s", WRITE_64K, "UDP, GSO and GRO", UDP, ">= 0.70"),
    Ratio("write 64 KiB / TCP 256 KiB", "Gb/s", WRITE_64K, "TCP 256 KiB", TCP_256, ">= 1.0"),
    Ratio("write 64 KiB / TCP 64 KiB", "Gb/s", WRITE_64K, "TCP 64 KiB, blocking",
          TCP_64_BLOCKING, ">= 2.0"),
    Ratio("write 1 MiB", "Gb/s", WRITE_1M, "UDP, GSO and GRO", UDP, ">= 0.70"),
    Ratio("write 1 MiB / TCP 256 KiB", "Gb/s", WRITE_1M, "TCP 256 KiB", TCP_256, ">= 1.0"),
    Ratio("write 1 MiB / TCP 64 KiB", "Gb/s", WRITE_1M, "TCP 64 KiB, blocking",
          TCP_64_BLOCKING, ">= 2.0"),
    Ratio("write 64 KiB, MTU 1024, veth", "Gb/s",
          bandwidth("ib_write_bw", "-s", 65536, iterations=60_000, place="veth"),
          "UDP, GSO and GRO, veth", UDP_VETH, ">= 0.60"),
    Ratio("read 64 KiB", "Gb/s", READ_64K, "write 64 KiB", WRITE_64K, ">= 0.9"),
    Ratio("send 64 KiB", "Gb/s", SEND_64K, "write 64 KiB", WRITE_64K, ">= 0.9"),
    Ratio("write 64 KiB, single packets", "Gb/s",
          bandwidth("ib_write_bw", "-s", 65536, "-m", 4096, iterations=20_000,
                    urxe_options=("--single-packets",)),
          "UDP, sendmmsg", UDP_SINGLE, ">= 0.9"),
    Ratio("send latency", "us", latency("ib_send_lat", "-s", 8), "UDP, both spin", SPIN,
          "<= 1.3"),
    Ratio("read latency", "us", latency("ib_read_lat", "-s", 8), "UDP, both spin",
          SPIN_BOTH_WAYS, "<= 1.3"),
    Ratio("read latency, same waiting", "us", latency("ib_read_lat", "-s", 8),
          "UDP, client spins, server blocks", SPIN_AND_BLOCK, "<= 1.3"),
    Ratio("write latency", "us", latency("ib_write_lat", "-s", 8),
          "UDP, flag and blocked thread", FLAG, "<= 1.3"),
    Ratio("send latency, events", "us", latency("ib_send_lat", "-s", 8, "-e"),
          "UDP, both block", BLOCK, "<= 1.3"),
    Ratio("write 64 B, 1,024 deep", "million/s",
          message_rate("ib_write_bw", "-s", 64, "-t", 1024, iterations=2_000_000),
          "UDP, sendmmsg", UDP_SMALL, ">= 5.0"),
    Ratio("1,000 queue pairs", "Gb/s",
          bandwidth("ib_write_bw", "-q", 1000, *MANY_QPS, iterations=100),
          "one queue pair", WRITE_64K, ">= 0.7"),
    Bound("reg_mr of 4 GiB", "us", program("microseconds", "reg_mr", 4 << 30), 20),
    Bound("memory of an idle queue pair", "bytes", program("bytes_per_qp", "idle", 1000, 0), 4096,
          pairs=1),
    Bound("wake-ups in 10 s, 1,000 queue pairs", "wake-ups", program("wakes", "idle", 1000, 10),
          0, pairs=1),
    Ratio("CPU time", "s/GB", cpu_per_gigabyte("ib_write_bw", 65536, 100_000, "-m", 4096),
          "TCP 64 KiB, blocking", TCP_CPU, "<= 1.0"),
]
