"""Running programs on nodes: one alone, or a server and its client."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time

from tests.compat import nodes

PATIENCE = 60  # seconds that a program may take
LISTEN = "0A"  # a state in /proc/net/tcp

# Whoever ends the tests early ends their programs and removes their namespaces, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


@dataclasses.dataclass
class Finished:
    """A program that has ended."""
    command: list
    status: int
    output: str
    log: str
    pcap: str

    def __str__(self):
        text = f"$ {' '.join(self.command)}\nstatus {self.status}\n{self.output}"
        return text + (f"urxe's log:\n{self.log}" if self.log else "")


@dataclasses.dataclass
class Both:
    server: Finished
    client: Finished

    def __str__(self):
        return f"=== server\n{self.server}\n=== client\n{self.client}"

    @property
    def captures(self):
        return [end.pcap for end in (self.server, self.client) if end.pcap]


def environment():
    result = {name: value for name, value in os.environ.items() if not name.startswith("URXE_")}
    result.update({"LC_ALL": "C", "HOME": "/nonexistent"})
    # What programs that end with their objects alive leak is not our affair.
    result["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0:exitcode=66"
    result["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1:exitcode=66"
    # Its own handlers of faults are installed before it can bear the library's sigaction. It does
    # not see how librxe synchronises, so what other libraries copy and compare is not judged.
    faults = "".join(f":handle_{fault}=0" for fault in "segv sigbus sigfpe sigill abort".split())
    result["TSAN_OPTIONS"] = ("halt_on_error=1:second_deadlock_stack=1:exitcode=66"
                              f":ignore_noninstrumented_modules=1{faults}")
    return result


class Runner:
    """Runs programs in a world as a user, with captures and logs in a folder of its own."""

    def __init__(self, world, user, folder, capture=True, patience=PATIENCE, wrapper=()):
        self.world = world
        self.user = user
        self.folder = folder
        self.capture = capture
        self.patience = patience * nodes.SLOWNESS
        self.wrapper = list(wrapper)  # between `urxe run` and the program: valgrind
        self.number = 0

    def command(self, node, program, pcap, log, options=()):
        build, preload = nodes.product()
        command = list(node.prefix) + nodes.as_user(self.user)
        if nodes.SANITIZE:
            # ThreadSanitizer does not like much randomness in the address space.
            command += ["setarch", "-R", "env", f"LD_PRELOAD={preload}"]
        command += [f"{build}/bin/urxe", "run", "--device", node.device, "--log", f"info:{log}"]
        command += ["--pcap", pcap] if pcap else []
        return command + list(options) + ["--"] + self.wrapper + list(program)

    @contextlib.contextmanager
    def started(self, node, program, name, options=()):
        """A process, and a function that waits for its end. It is killed if that is not called."""
        self.number += 1
        base = os.path.join(self.folder, f"{self.number:03}-{name}")
        pcap = f"{base}.pcap" if self.capture else ""
        command = self.command(node, program, pcap, f"{base}.log", options)
        with open(f"{base}.out", "w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                cwd=self.folder, env=environment(), start_new_session=True)
            try:
                yield process, lambda: self.finish(process, command, base, pcap)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.wait()

    def finish(self, process, command, base, pcap):
        try:
            process.wait(self.patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        return Finished(command, process.returncode, read(f"{base}.out"), read(f"{base}.log"),
                        pcap if pcap and os.path.exists(pcap) else "")

    def alone(self, program, node=None, options=()):
        with self.started(node or self.world.server, program, "alone", options) as (_, finish):
            return finish()

    def both(self, server, client, port, options=()):
        """Starts the server, and, when it listens on the TCP port, the client; returns when both
        have ended, or were killed for being late."""
        with self.started(self.world.server, server, "server", options) as (process, end_server):
            if not wait_for_listener(process, port, self.patience):
                raise AssertionError(f"the server does not listen on port {port}\n{end_server()}")
            with self.started(self.world.client, client, "client", options) as (_, end_client):
                finished_client = end_client()
            if finished_client.status != 0 and process.poll() is None:
                linger(process, 2)
            return Both(end_server(), finished_client)


def linger(process, seconds):
    """Gives a server whose client failed the time to say so, and ends it."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def listens(pid, port):
    """Whether anything listens on the port in the process's network namespace."""
    for name in ("tcp", "tcp6"):
        for line in read(f"/proc/{pid}/net/{name}").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return True
    return False


def holds_udp_port(pid, port):
    """Whether anything has the UDP port in the process's network namespace."""
    return any(int(line.split()[1].rsplit(":", 1)[1], 16) == port for name in ("udp", "udp6")
               for line in read(f"/proc/{pid}/net/{name}").splitlines()[1:])


def wait_for_listener(process, port, patience):
    deadline = time.monotonic() + patience
    while process.poll() is None and time.monotonic() < deadline:
        if listens(process.pid, port):
            return True
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def folder():
    """A folder into which every user may write; it goes away with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="urxe-compat-") as path:
        os.chmod(path, 0o777)
        yield path
