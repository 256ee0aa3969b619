"""Many connections, many processes on one address, and processes that are killed:
scale.py WORLD PAIRS SECONDS"""

import contextlib
import os
import random
import signal
import sys
import time

from tests.compat import nodes, pair, suite
from tests.compat.rdma_cm import programs

PROGRAM = f"{nodes.BUILD}/tests/connections"
FIRST_PORT = 20000
KILL_EVERY = 0.1  # seconds
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


def thousand_connections(world, runner):
    with contextlib.ExitStack() as stack:
        server = start_server(stack, runner, world, FIRST_PORT)
        _, finish = start_client(stack, runner, world, FIRST_PORT, 1000, 2, 0)
        end = finish()
        assert end.status == 0 and "all echoes right" in end.output, end
        print("  " + end.output.splitlines()[0])
        said = stop(*server).output
        assert said.count("a connection ended") == 1000, said[-1000:]


def many_clients(world, runner, count):
    """They all begin at once."""
    with contextlib.ExitStack() as stack:
        server = start_server(stack, runner, world, FIRST_PORT)
        clients = [start_client(stack, runner, world, FIRST_PORT, 1, 3, 0) for _ in range(count)]
        for _, finish in clients:
            end = finish()
            assert end.status == 0 and "all echoes right" in end.output, end
        stop(*server)


def wait_for_words(path, wanted, seconds):
    deadline = time.monotonic() + seconds * nodes.SLOWNESS
    while wanted not in pair.read(path):
        assert time.monotonic() < deadline, f"no {wanted!r} in {pair.read(path)!r}"
        time.sleep(0.05)


def killed_end(world, runner, victim):
    """One end is killed, while the other waits for nothing but events."""
    limit = LATEST_ANSWER if world.server.prefix == world.client.prefix else LATEST_SILENCE
    with contextlib.ExitStack() as stack:
        server, _ = start_server(stack, runner, world, FIRST_PORT)
        server_says = os.path.join(runner.folder, f"{runner.number:03}-server-{FIRST_PORT}.out")
        client, _ = start_client(stack, runner, world, FIRST_PORT, 1, 0, 0)
        client_says = os.path.join(runner.folder, f"{runner.number:03}-client-{FIRST_PORT}.out")
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
        server_says = os.path.join(runner.folder, f"{runner.number:03}-server-{FIRST_PORT}.out")
        client, _ = stack.enter_context(runner.started(
            world.client, ["timeout", "-s", "TERM", "2"] +
            client_of(world, FIRST_PORT, 1, 0, 0), "terminated"))
        client.wait(30 * nodes.SLOWNESS)
        wait_for_words(server_says, "a connection ended", LATEST_SILENCE)


class Pair:
    """A server and its client, which exchange messages until they are killed or time is up."""

    def __init__(self, runner, world, port, seconds):
        self.stack = contextlib.ExitStack()
        self.server, self.end_server = start_server(self.stack, runner, world, port)
        self.client, self.end_client = start_client(self.stack, runner, world, port, 1, 0, seconds)

    def kill(self):
        for process in (self.client, self.server):
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.stack.close()

    def finish(self):
        end = self.end_client()
        assert end.status == 0 and "all echoes right" in end.output, end
        stop(self.server, self.end_server)
        self.stack.close()


def left_behind(world):
    """Names and sockets of processes of ours on the server's node."""
    names = sum("urxe/" in line for line in
                programs.read_in(world.server, "/proc/net/unix").splitlines())
    sockets = sum(":12B7 " in programs.read_in(world.server, f"/proc/net/{kind}")
                  for kind in ("udp", "udp6"))
    return {"names": names, "sockets": sockets}


def killing(world, runner, pairs, seconds):
    """One pair is killed every now and then, and replaced; the others must not notice."""
    dice = random.Random(1)
    before = left_behind(world)
    deadline = time.monotonic() + seconds
    ports = iter(range(FIRST_PORT, 65000))

    def start():
        return Pair(runner, world, next(ports), max(1, round(deadline - time.monotonic())))

    running = []
    killed = 0
    try:
        running += [start() for _ in range(pairs)]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            next_kill = time.monotonic() + KILL_EVERY
            victim = dice.randrange(len(running))
            running[victim].kill()
            killed += 1
            running[victim] = start()
            time.sleep(max(0.0, next_kill - time.monotonic()))
        for one in running:
            one.finish()
    finally:
        for one in running:
            one.stack.close()
    print(f"  {killed} pairs killed, {pairs} lived to the end")
    after = left_behind(world)
    assert after == before, f"left behind: {before} before, {after} after"


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
