"""Many connections, many processes on one address, and processes that are killed:
scale.py WORLD PAIRS SECONDS"""

import contextlib
import fcntl
import glob
import os
import random
import re
import signal
import sys
import time

from tests.compat import nodes, pair, suite
from tests.compat.rdma_cm import programs

PROGRAM = f"{nodes.BUILD}/tests/connections"
DATAGRAMS = f"{nodes.BUILD}/tests/datagrams"
FIRST_PORT = 20000
KILL_EVERY = 0.1  # seconds
START_EACH = 0.3  # seconds for a pair to begin
LOOK = 0.8  # seconds to see what a pair holds
# KB of a pair, while others are killed; sanitizers keep what was freed.
MOST_GROWTH = 64 * 1024 if nodes.SANITIZE else 1024
# A peer is asked every five seconds whether it lives (emulator/cm/liveness.cc): a process of ours
# at its address answers for it; without one silence has to be long enough.
LATEST_ANSWER = 10
LATEST_SILENCE = 40


def server_of(world, port):
    return [PROGRAM, "server", world.server.address, str(port)]


def client_of(world, port, count, rounds, seconds):
    return [PROGRAM, "client", world.server.address, str(port), str(count), str(rounds),
            str(seconds)]


def start_server(stack, runner, world, port):
    case = programs.Case("", "", port)
    process, finish = stack.enter_context(
        runner.started(world.server, server_of(world, port), f"server-{port}"))
    assert programs.wait_until(lambda: programs.listens(world.server, case), process), \
        f"the server does not listen\n{finish()}"
    return process, finish


def start_client(stack, runner, world, port, count, rounds, seconds):
    return stack.enter_context(runner.started(
        world.client, client_of(world, port, count, rounds, seconds), f"client-{port}"))


def stop(process, finish):
    process.send_signal(signal.SIGTERM)
    end = finish()
    assert end.status == 0, end
    return end


def output_of_last(runner, name):
    """The file with what the process said that was started last."""
    return os.path.join(runner.folder, f"{runner.number:03}-{name}-{FIRST_PORT}.out")


def wait_for_words(path, wanted, seconds, times=1):
    deadline = time.monotonic() + seconds * nodes.SLOWNESS
    while (said := pair.read(path)).count(wanted) < times:
        assert time.monotonic() < deadline, f"fewer than {times} {wanted!r} in {said[-1000:]!r}"
        time.sleep(0.05)


def thousand_connections(world, runner):
    with contextlib.ExitStack() as stack:
        server = start_server(stack, runner, world, FIRST_PORT)
        server_says = output_of_last(runner, "server")
        _, finish = start_client(stack, runner, world, FIRST_PORT, 1000, 2, 0)
        end = finish()
        assert end.status == 0 and "all echoes right" in end.output, end
        print("  " + end.output.splitlines()[0])
        # Its device agrees to a disconnection at once, the program hears of it when it asks.
        wait_for_words(server_says, "a connection ended", 20, times=1000)
        assert stop(*server).output.count("a connection ended") == 1000


def many_clients(world, runner, count):
    """They all begin at once."""
    with contextlib.ExitStack() as stack:
        server = start_server(stack, runner, world, FIRST_PORT)
        clients = [start_client(stack, runner, world, FIRST_PORT, 1, 3, 0) for _ in range(count)]
        for _, finish in clients:
            end = finish()
            assert end.status == 0 and "all echoes right" in end.output, end
        stop(*server)


def killed_end(world, runner, victim):
    """One end is killed, while the other waits for nothing but events."""
    limit = LATEST_ANSWER if world.server.prefix == world.client.prefix else LATEST_SILENCE
    with contextlib.ExitStack() as stack:
        server, _ = start_server(stack, runner, world, FIRST_PORT)
        server_says = output_of_last(runner, "server")
        client, _ = start_client(stack, runner, world, FIRST_PORT, 1, 0, 0)
        client_says = output_of_last(runner, "client")
        wait_for_words(client_says, "per second", 20)
        time.sleep(1)  # silence counts after the first answer, which comes within half a second
        killed, path, words = {
            "client": (client, server_says, "a connection ended"),
            "server": (server, client_says, "the connection ended")}[victim]
        started = time.monotonic()
        killed.send_signal(signal.SIGKILL)
        wait_for_words(path, words, limit)
        print(f"  the other end knew after {time.monotonic() - started:.1f} s")


def ended_client(world, runner):
    """A client that SIGTERM ends, which it does not handle."""
    with contextlib.ExitStack() as stack:
        start_server(stack, runner, world, FIRST_PORT)
        server_says = output_of_last(runner, "server")
        client, _ = stack.enter_context(runner.started(
            world.client, ["timeout", "-s", "TERM", "2"] +
            client_of(world, FIRST_PORT, 1, 0, 0), "terminated"))
        client.wait(30 * nodes.SLOWNESS)
        wait_for_words(server_says, "a connection ended", LATEST_SILENCE)


def footprints(pairs):
    """Open files, and kilobytes of memory, of each pair."""
    files = [1 << 30] * len(pairs)
    # Who finds out which process gets what has a socket more for that while.
    for _ in range(25):
        time.sleep(LOOK / 25)
        files = [min(least, one.files()) for least, one in zip(files, pairs)]
    return list(zip(files, [one.memory() for one in pairs]))


class Pair:
    """A server and its client, which exchange messages until they are killed or time is up."""

    def __init__(self, runner, world, port, space):
        self.runner, self.world, self.port, self.space = runner, world, port, space
        self.stack = contextlib.ExitStack()
        self.server, self.end_server = self.start(
            world.server, ["server", world.server.address, str(port)])
        self.client = None
        service = programs.PORT_SPACES[space] << 16 | port
        self.name = f"urxe/name/cm/{service:016x}/"

    def start(self, node, arguments):
        program = PROGRAM if self.space == "tcp" else DATAGRAMS
        name = f"{self.space}-{arguments[0]}-{self.port}"
        return self.stack.enter_context(self.runner.started(node, [program] + arguments, name))

    def start_client(self, seconds):
        arguments = ["client", self.world.server.address, str(self.port)]
        if self.space == "tcp":
            arguments += ["1", "0"]
        self.client, self.end_client = self.start(self.world.client, arguments + [str(seconds)])

    def kill(self):
        for process in (self.client, self.server):
            process.send_signal(signal.SIGKILL)

    def is_dead(self):
        return self.client.poll() is not None and self.server.poll() is not None

    def files(self):
        return sum(len(os.listdir(f"/proc/{process.pid}/fd"))
                   for process in (self.client, self.server))

    def memory(self):
        return sum(int(re.search(r"VmRSS:\s+(\d+)",
                                 pair.read(f"/proc/{process.pid}/status")).group(1))
                   for process in (self.client, self.server))

    def finish(self):
        end = self.end_client()
        assert end.status == 0 and "all echoes right" in end.output, end
        stop(self.server, self.end_server)
        self.stack.close()


def leftover_trees():
    """Directories of ours whose processes are gone: nobody holds their lock."""
    count = 0
    for tree in glob.glob("/dev/shm/urxe-tree.*"):
        with contextlib.suppress(OSError):
            directory = os.open(tree, os.O_RDONLY)
            if os.fstat(directory).st_uid == os.geteuid():
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    count += 1
            os.close(directory)
    return count


def check_trees(world, runner):
    """Whoever starts removes what the dead have left. Other tests may kill, too: one moment without
    leftovers is enough."""
    deadline = time.monotonic() + 20 * nodes.SLOWNESS
    while True:
        end = runner.alone(["true"], world.server)
        assert end.status == 0, end
        if leftover_trees() == 0:
            return
        assert time.monotonic() < deadline, "directories of dead processes stay"
        time.sleep(0.2)


def left_behind(world):
    """Names and sockets of processes of ours on the server's node."""
    names = sum("urxe/" in line for line in
                programs.read_in(world.server, "/proc/net/unix").splitlines())
    sockets = sum(":12B7 " in programs.read_in(world.server, f"/proc/net/{kind}")
                  for kind in ("udp", "udp6"))
    return {"names": names, "sockets": sockets}


class Crowd:
    """Pairs of both kinds, in turn. The first of each kind are never killed."""

    WITNESSES = 2

    def __init__(self, runner, world):
        self.runner, self.world = runner, world
        self.ports = iter(range(FIRST_PORT, 65000))
        self.pairs = []
        self.dying = []
        self.deadline = None

    def add(self, index):
        space = ("tcp", "udp")[index % 2]
        self.pairs[index:index + 1] = [Pair(self.runner, self.world, next(self.ports), space)]

    def advance(self):
        """Starts the clients whose servers listen by now. True if all have been started."""
        waiting = [one for one in self.pairs if one.client is None]
        if waiting:
            names = pair.read(f"/proc/{self.pairs[0].server.pid}/net/unix")
            for one in waiting:
                assert one.server.poll() is None, one.end_server()
                if one.name in names:
                    left = self.deadline - time.monotonic()
                    one.start_client(max(1, round(left)))
        return not waiting

    def begin(self, count, seconds):
        """`seconds` is counted from when all are there."""
        for index in range(count):
            self.add(index)
        latest = time.monotonic() + (2 + START_EACH * count) * nodes.SLOWNESS
        self.deadline = latest + seconds
        while not self.advance():
            assert time.monotonic() < latest, "the pairs do not start"
            time.sleep(0.02)
        return latest

    def kill_one(self, dice):
        """False if none can be killed yet: all that may be have only just been started."""
        victims = [index for index, one in enumerate(self.pairs)
                   if index >= self.WITNESSES and one.client is not None]
        if not victims:
            return False
        victim = dice.choice(victims)
        self.pairs[victim].kill()
        self.dying.append(self.pairs[victim])
        self.add(victim)
        return True

    def bury(self):
        """True if all that were killed are dead. The kernel needs a while to end a process."""
        for one in [one for one in self.dying if one.is_dead()]:
            one.stack.close()
            self.dying.remove(one)
        return not self.dying


def keep_pace():
    """This process gets its turn before those it starts, where that is permitted."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def killing(world, runner, pairs, seconds):
    """One pair is killed every now and then, and replaced; the others must not notice."""
    keep_pace()
    dice = random.Random(1)
    before = left_behind(world)
    crowd = Crowd(runner, world)
    killed = 0
    try:
        crowd.begin(pairs, seconds + 8 * LOOK * nodes.SLOWNESS)
        time.sleep(1)  # until the last ones have opened their devices
        before_kills = footprints(crowd.pairs[:crowd.WITNESSES])
        started = time.monotonic()
        next_kill = started
        while (now := time.monotonic()) < started + seconds:
            crowd.advance()
            crowd.bury()
            if now >= next_kill and crowd.kill_one(dice):
                killed += 1
                next_kill += KILL_EVERY
            time.sleep(0.005)
        rate = killed / (time.monotonic() - started)
        while not (crowd.advance() and crowd.bury()):
            time.sleep(0.02)
        after_kills = footprints(crowd.pairs[:crowd.WITNESSES])
        for one in crowd.pairs:
            one.finish()
    finally:
        for one in crowd.pairs + crowd.dying:
            one.stack.close()
    assert killed >= seconds, f"only {killed} pairs were killed in {seconds} s"
    print(f"  {killed} pairs killed, {rate:.1f} per second; {pairs} lived to the end")
    for (files, memory), (files_after, memory_after) in zip(before_kills, after_kills):
        print(f"  of a pair that lived: {files} files and {memory} KB, {files_after} files and "
              f"{memory_after} KB in the end")
        assert files_after == files and memory_after < memory + MOST_GROWTH, "it has grown"
    left = left_behind(world)
    assert left == before, f"left behind: {before} before, {left} after"
    check_trees(world, runner)


def main():
    world_name, pairs, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cases = {
        "a thousand connections of two processes": thousand_connections,
        "the client is killed": lambda w, r: killed_end(w, r, "client"),
        "the server is killed": lambda w, r: killed_end(w, r, "server"),
        "the client is terminated": ended_client,
    }
    if world_name == "one":
        crowd = 199 if pairs >= 64 else 40
        cases[f"{crowd + 1} processes on one address"] = lambda w, r: many_clients(w, r, crowd)
        cases[f"{pairs} pairs, some killed"] = lambda w, r: killing(w, r, pairs, seconds)
    return suite.run(world_name, cases.items(), patience=120 + seconds)


if __name__ == "__main__":
    sys.exit(main())
