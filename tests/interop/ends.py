"""The two ends of a run: a guest with the kernel's rxe, or urxe in a network namespace."""

import ctypes
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
LAB = HERE / "lab/lab"
MAKE_GUEST = HERE / "lab/make-guest"
CLONE_NEWNET = 0x40000000
STATUS = re.compile(rb"\n__RC__ (\d+)\n$")
TIMED_OUT = 124
LOST = 125


def lab_dir():
    base = os.environ.get("XDG_CACHE_HOME", "/var/tmp")
    return pathlib.Path(os.environ.get("LAB_DIR", f"{base}/urxe-lab"))


def lab(*arguments, check=True):
    """Runs one of the lab's commands; its output."""
    done = subprocess.run([LAB, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"lab {' '.join(arguments)}: {done.stdout.strip()}")
    return done.stdout


def enter_lab_network():
    """Puts this process beside the bridge: the guests' agents listen there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(lab_dir() / "run/netns", "rb") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Job:
    """A command that runs at an end. `status` is None while it runs."""

    def __init__(self):
        self.output = b""
        self.status = None
        self.thread = threading.Thread(target=self.read, daemon=True)

    def wait(self, seconds):
        """The exit status; 124, and the command is killed, if it takes longer."""
        self.thread.join(max(0, seconds))
        if self.thread.is_alive():
            self.kill()
            self.thread.join(10)
            self.status = TIMED_OUT
        return self.status

    def wait_for_text(self, text, seconds):
        """Waits until the command has said something; False if it does not."""
        deadline = time.monotonic() + seconds
        while text not in self.text and self.thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        return text in self.text

    @property
    def text(self):
        return self.output.decode(errors="replace")


class GuestJob(Job):
    """A guest's agent kills the command when the connection ends."""

    def __init__(self, port, command):
        super().__init__()
        self.connection = socket.create_connection(("127.0.0.1", port), 10)
        self.connection.settimeout(None)
        self.connection.sendall(command.encode() + b"\0")
        self.thread.start()

    def read(self):
        try:
            while data := self.connection.recv(65536):
                self.output += data
        except OSError:
            pass
        ended = STATUS.search(self.output)
        self.status = int(ended[1]) if ended else LOST
        self.output = self.output[:ended.start()] if ended else self.output
        self.connection.close()

    def kill(self):
        self.connection.shutdown(socket.SHUT_RDWR)


class HostJob(Job):
    def __init__(self, command, environment):
        super().__init__()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.thread.start()

    def read(self):
        while data := os.read(self.process.stdout.fileno(), 65536):
            self.output += data
        status = self.process.wait()
        self.status = status if status >= 0 else 128 - status

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class End:
    """A place where programs use an RDMA device called rxe0."""

    def run(self, command, seconds=60):
        """Runs a command to its end: (status, output)."""
        job = self.start(command)
        status = job.wait(seconds)
        return status, job.text

    def addresses(self):
        """As packets have them: IPv4, and the link-local IPv6 address of the interface's MAC."""
        number = int(self.address.rsplit(".", 1)[1])
        return [bytes(map(int, self.address.split("."))),
                bytes.fromhex(f"fe8000000000000050540" + f"0fffe8800{number:02x}")]

    def wait_for(self, condition, seconds=20):
        """Waits until a shell condition holds; False if it does not."""
        deadline = int(seconds / 0.05)
        loop = f"for i in $(seq {deadline}); do {condition} && exit 0; sleep 0.05; done; exit 1"
        return self.run_plain(loop, seconds * 3) == 0

    def wait_for_tcp(self, port):
        """Waits until somebody listens on a TCP port."""
        pattern = f"'^ *[0-9]+: [0-9A-F]+:{port:04X} [0-9A-F:]+ 0A '"
        return self.wait_for(f"grep -qE {pattern} /proc/net/tcp /proc/net/tcp6")

    def wait_for_listener(self):
        """Waits until somebody listens for connections of rdma_cm."""
        return self.wait_for(self.LISTENS)


class Guest(End):
    LISTENS = "rdma resource show cm_id | grep -q LISTEN"

    def __init__(self, name, kernel):
        self.name = name
        self.kernel = kernel
        self.kind = f"rxe {kernel}"
        number = ord(name) - 63
        self.address = f"10.88.0.{number}"
        self.port = 7700 + number
        self.share = "/mnt/lab"

    def boot(self):
        lab("stop", self.name)
        lab("start", self.name, "--kernel", self.kernel, "--memory", "1024")

    def start(self, command, urxe_options=()):
        del urxe_options
        return GuestJob(self.port, f"ulimit -l unlimited; {command}")

    def run_plain(self, command, seconds):
        return self.start(command).wait(seconds)

    def netem(self, what):
        lab("netem", self.name, *what.split())

    def release(self):
        return self.run("uname -r")[1].strip()

    def stop(self):
        lab("stop", self.name)


class Urxe(End):
    """A namespace of this host; every command runs under `urxe run`."""

    LISTENS = "grep -q @urxe/name/ /proc/net/unix"

    def __init__(self, name, urxe):
        self.name = name
        self.kind = "urxe"
        self.address = f"10.88.0.{ord(name) - 63}"
        self.share = str(HERE)
        self.urxe = str(urxe)

    def boot(self):
        lab("end", self.name)

    def start(self, command, urxe_options=()):
        return self.job([self.urxe, "run", *urxe_options, "--", "bash", "-c", f"exec {command}"])

    def run_plain(self, command, seconds):
        return self.job(["bash", "-c", command]).wait(seconds)

    def job(self, command):
        space = lab_dir() / f"run/end-{self.name}"
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        return HostJob(["nsenter", f"--net={space}", "--", *command], environment)

    def stop(self):
        pass


def quoted(*words):
    return " ".join(shlex.quote(str(word)) for word in words)


class Capture:
    """One capture of the bridge, from which each run takes its part."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.offset = 0
        self.header = b""

    def start(self):
        lab("pcap", "start", str(self.path), "udp", "port", "4791")

    def mark(self):
        """What comes from here on belongs to the next run."""
        self.take(settle=0)

    def take(self, settle=0.3):
        """The bytes, as of a pcap file, that were captured since the last call."""
        time.sleep(settle)  # tcpdump writes each packet at once, but after it was delivered
        with open(self.path, "rb") as file:
            if not self.header:
                self.header = file.read(24)
            file.seek(max(self.offset, 24))
            data = file.read()
        end = whole_records(data)
        self.offset = max(self.offset, 24) + end
        return self.header + data[:end]

    def wait_for(self, size, seconds):
        """Waits until so many bytes were captured since the last run; False if they are not."""
        deadline = time.monotonic() + seconds
        while self.path.stat().st_size < self.offset + size and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.path.stat().st_size >= self.offset + size

    def stop(self):
        """What tcpdump says of the packets that it missed."""
        return lab("pcap", "stop").strip()


def whole_records(data):
    """Where the last whole record of a little-endian pcap file's records ends."""
    offset = 0
    while offset + 16 <= len(data):
        length = int.from_bytes(data[offset + 8:offset + 12], "little")
        if offset + 16 + length > len(data):
            break
        offset += 16 + length
    return offset
