"""Starts the programs that are measured, two at a time, a processor each."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

PATIENCE = 120  # seconds that a measurement may take
SERVER_CPU, CLIENT_CPU = "1", "0"


class Failed(Exception):
    """A program did not do what it should; the text says which and why."""

    def __init__(self, text):
        lines = text.splitlines()
        super().__init__("\n".join(lines[:1] + lines[1:][-12:]))


class Place:
    """Where the two programs run: addresses, devices, and how to get there."""

    def __init__(self, server, client, devices, prefixes=((), ()), netns=None):
        self.server, self.client = server, client
        self.server_device, self.client_device = devices
        self.server_prefix, self.client_prefix = prefixes
        self.netns = netns  # the server's, for the yardsticks


LOOPBACK = Place("127.0.0.1", "127.0.0.2", ("rxe0=lo/127.0.0.1", "rxe0=lo/127.0.0.2"))


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          **more)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def listens(pid, port):
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{pid}/net/{name}").read_text()
            if re.search(rf":{port:04X} \S+ 0A ", text):
                return True
    return False


def cpu_seconds_of(process):
    """Waits for a child; returns its CPU time. Raises if it failed."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


class Machine:
    """What all measurements share. Removes what it made when it is left."""

    def __init__(self, build, quick):
        self.build = build
        self.seconds = 0.7 if quick else 1.5
        self.share = 0.4 if quick else 1.0  # of the iterations of a full measurement
        self.port = 20000 + os.getpid() % 10000
        self.veth = None
        self.namespaces = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def over_veth(self):
        """Two network namespaces with a cable between them, MTU 1500."""
        if self.veth is not None:
            return self.veth
        names = [f"urxe-bench-{side}-{os.getpid()}" for side in "ab"]
        for name in names:
            run(["ip", "netns", "add", name])
            self.namespaces.append(name)
        run(["ip", "link", "add", "eth0", "netns", names[0], "type", "veth",
             "peer", "name", "eth0", "netns", names[1]])
        for number, name in enumerate(names, 1):
            run(["ip", "-n", name, "address", "add", f"10.0.0.{number}/24", "dev", "eth0"])
            run(["ip", "-n", name, "link", "set", "lo", "up"])
            run(["ip", "-n", name, "link", "set", "eth0", "up"])
        for name in names:
            self.wait_until_it_is_up(name)
        prefixes = tuple(("ip", "netns", "exec", name) for name in names)
        self.veth = Place("10.0.0.1", "10.0.0.2", ("rxe0=eth0", "rxe0=eth0"), prefixes, names[0])
        return self.veth

    @staticmethod
    def wait_until_it_is_up(namespace):
        end = time.monotonic() + 20
        while "state UP" not in run(["ip", "-n", namespace, "link", "show", "dev", "eth0"]):
            if time.monotonic() > end:
                raise Failed(f"eth0 of {namespace} does not come up")
            time.sleep(0.05)

    # --- yardsticks

    def yardstick(self, kind, place=LOOPBACK, **options):
        command = [*place.client_prefix, str(self.build / "bench/yardstick"), kind,
                   "--address", place.server, "--seconds", str(self.seconds),
                   "--server-cpu", SERVER_CPU, "--client-cpu", CLIENT_CPU]
        if place.netns:
            command += ["--netns", place.netns]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        return json.loads(run(command))

    # --- programs on urxe

    def on_urxe(self, prefix, cpu, device, command, more=()):
        return [*prefix, "taskset", "-c", cpu, str(self.build / "bin/urxe"), "run",
                "--hide-real", *more, "--device", device, "--", *command]

    def program(self, name, *arguments):
        """One of our own small programs; returns what it printed as JSON."""
        command = self.on_urxe((), CLIENT_CPU, LOOPBACK.client_device,
                               [str(self.build / "bench" / name), *map(str, arguments)])
        return json.loads(run(command))

    def perftest(self, name, *arguments, place=LOOPBACK, urxe_options=()):
        """Runs a pair of perftest programs; returns the columns of the client's result, and
        the CPU seconds that both took."""
        self.port += 1
        command = [name, "-F", "-p", str(self.port), *map(str, arguments)]
        server_command = self.on_urxe(place.server_prefix, SERVER_CPU, place.server_device,
                                      command, urxe_options)
        client_command = self.on_urxe(place.client_prefix, CLIENT_CPU, place.client_device,
                                      [*command, place.server], urxe_options)
        with self.started(server_command) as server:
            self.wait_until_it_listens(server, server_command)
            with self.started(client_command) as client:
                output, _ = client.wait(PATIENCE)
            server.wait(PATIENCE)
        if client.returncode != 0 or server.returncode != 0:
            raise Failed(f"{' '.join(client_command)}: status {client.returncode}, "
                         f"the server's {server.returncode}\n{output}{server.output}")
        columns = re.findall(r"^ *\d+ +\d+ +[\d.]+.*$", output, re.MULTILINE)
        if not columns:
            raise Failed(f"{' '.join(client_command)}: no result\n{output}")
        return ([float(text) for text in columns[-1].split()],
                client.cpu_seconds + server.cpu_seconds)

    def wait_until_it_listens(self, server, command):
        end = time.monotonic() + 20
        while not listens(server.pid, self.port):
            if server.has_ended() or time.monotonic() > end:
                server.kill()
                raise Failed(f"{' '.join(command)}: does not listen\n{server.output}")
            time.sleep(0.01)

    @contextlib.contextmanager
    def started(self, command):
        process = Measured(command)
        try:
            yield process
        finally:
            process.kill()


class Measured:
    """A child, its output and its CPU time."""

    def __init__(self, command):
        self.file = tempfile.TemporaryFile("w+")  # a pipe may be too small
        self.process = subprocess.Popen(command, stdout=self.file, stderr=subprocess.STDOUT)
        self.pid = self.process.pid
        self.output = ""
        self.returncode = None
        self.cpu_seconds = 0.0

    def has_ended(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self, patience):
        end = time.monotonic() + patience
        while not self.has_ended():
            if time.monotonic() > end:
                self.process.kill()
            time.sleep(0.01)
        self.reap()
        return self.output, self.cpu_seconds

    def reap(self):
        if self.returncode is not None:
            return
        self.cpu_seconds = cpu_seconds_of(self.process)
        self.returncode = self.process.returncode
        self.file.seek(0)
        self.output = self.file.read()
        self.file.close()

    def kill(self):
        if self.returncode is None:
            self.process.kill()
            self.reap()
