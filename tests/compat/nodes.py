"""Where the two ends of a test run: a world is a pair of nodes, a node an address with a device.

The environment of the tests (stock/CMakeLists.txt) says what to run:
  URXE_TEST_BUILD     the build's directory, with bin/urxe and lib/liburxe.so
  URXE_TEST_PRELOAD   the value of LD_PRELOAD; with sanitizers their runtime comes first
  URXE_TEST_SANITIZE  the sanitizers that the library was built with, if any
"""

import atexit
import contextlib
import dataclasses
import functools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time

BUILD = os.environ["URXE_TEST_BUILD"]
PRELOAD = os.environ["URXE_TEST_PRELOAD"]
SANITIZE = os.environ.get("URXE_TEST_SANITIZE", "")
URXE = f"{BUILD}/bin/urxe"
CHECKER = f"{BUILD}/tests/verbs_checker"

# How much longer things take under a sanitizer.
SLOWNESS = 8 if SANITIZE else 1
LOCKED_MEMORY = 64 * 1024  # bytes that the unprivileged user may lock: a common default
UNPRIVILEGED = "nobody"


@dataclasses.dataclass(frozen=True)
class Node:
    device: str  # for urxe run --device
    address: str  # IPv4, also for the tools' own TCP connection
    gids: dict  # "v4", "v6", "link" to the GID index
    prefix: tuple = ()  # a command that runs its arguments on this node


@dataclasses.dataclass(frozen=True)
class World:
    name: str
    server: Node
    client: Node
    mtu: int  # the largest path MTU


def run(*command):
    subprocess.run(command, check=True, capture_output=True, timeout=30)


def set_up(namespace, number, mtu):
    """An end of the veth pair: eth0 with an IPv4 and two IPv6 addresses."""
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    # Duplicate address detection would take a second.
    run("ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv6.conf.all.accept_dad=0",
        "net.ipv6.conf.eth0.accept_dad=0")
    run("ip", "-n", namespace, "address", "add", f"10.83.0.{number}/24", "dev", "eth0")
    run("ip", "-n", namespace, "address", "add", f"fd83::{number}/64", "dev", "eth0", "nodad")
    run("ip", "-n", namespace, "link", "set", "eth0", "mtu", str(mtu), "up")


def wait_for_link_local(namespace):
    """Until the address that the kernel gives by itself can be used."""
    deadline = time.monotonic() + 20
    while True:
        text = subprocess.run(["ip", "-n", namespace, "-6", "address", "show", "dev", "eth0"],
                              capture_output=True, text=True, check=True, timeout=20).stdout
        if "fe80:" in text and "tentative" not in text:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"no link-local address:\n{text}")
        time.sleep(0.05)


@functools.cache
def why_no_namespaces():
    """Why network namespaces cannot be made here; None if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"urxe-try-{os.getpid()}"
    result = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True,
                            check=False, timeout=30)
    if result.returncode != 0:
        return f"network namespaces are not permitted: {result.stderr.strip()}"
    run("ip", "netns", "delete", name)
    return None


@contextlib.contextmanager
def two_namespaces(mtu):
    """Two network namespaces, joined by a veth pair."""
    names = [f"urxe-{side}-{mtu}-{os.getpid()}" for side in "ab"]
    with contextlib.ExitStack() as stack:
        for name in names:
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "delete", name)
        run("ip", "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0",
            "netns", names[1])
        for number, name in enumerate(names, 1):
            set_up(name, number, mtu)
        for name in names:
            wait_for_link_local(name)
        gids = {"link": 0, "v4": 1, "v6": 2}
        nodes = [Node("rxe0=eth0", f"10.83.0.{number}", gids, ("ip", "netns", "exec", name))
                 for number, name in enumerate(names, 1)]
        yield World(f"two namespaces, MTU {mtu}", nodes[0], nodes[1], 1024 if mtu < 4176 else 4096)


@contextlib.contextmanager
def loopback(name, server, client, kind):
    """Two nodes on lo: of a network namespace of its own, where that is permitted, so that tests of
    several users may run at the same time."""
    with contextlib.ExitStack() as stack:
        prefix = ()
        if not why_no_namespaces():
            namespace = f"urxe-lo-{os.getpid()}"
            run("ip", "netns", "add", namespace)
            stack.callback(run, "ip", "netns", "delete", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
            prefix = ("ip", "netns", "exec", namespace)
        # The tools' own TCP connection goes by IPv4.
        nodes = [Node(f"rxe0=lo/{address}", address if kind == "v4" else "127.0.0.1", {kind: 0},
                      prefix) for address in (server, client)]
        yield World(name, nodes[0], nodes[1], 4096)


def worlds():
    """Names of all worlds, and what makes each (a context manager)."""
    return {
        "one": lambda: loopback("one address", "127.0.0.1", "127.0.0.1", "v4"),
        "two": lambda: loopback("two addresses", "127.0.0.2", "127.0.0.1", "v4"),
        "v6": lambda: loopback("::1", "::1", "::1", "v6"),
        "netns1500": lambda: two_namespaces(1500),
        "netns9000": lambda: two_namespaces(9000),
    }


def why_no_world(name):
    return why_no_namespaces() if name.startswith("netns") else None


# --- users

def users():
    """The users as whom programs run here. Two at once need namespaces: see loopback()."""
    if os.geteuid() != 0:
        return (UNPRIVILEGED,)
    return ("root",) if why_no_namespaces() else ("root", UNPRIVILEGED)


def as_user(user):
    """The start of a command that runs the rest as this user."""
    if user != UNPRIVILEGED:
        return []
    limit = ["prlimit", f"--memlock={LOCKED_MEMORY}:{LOCKED_MEMORY}"]
    if os.geteuid() != 0:
        return limit
    entry = pwd.getpwnam(UNPRIVILEGED)
    return limit + ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}",
                    "--clear-groups", "--"]


@functools.cache
def product():
    """Where `urxe` and the checker are, for every user: copies of them if the build is closed to
    others."""
    probe = subprocess.run(as_user(UNPRIVILEGED) + ["test", "-x", URXE], check=False, timeout=30)
    if probe.returncode == 0:
        return BUILD, PRELOAD
    folder = tempfile.mkdtemp(prefix="urxe-compat-")
    atexit.register(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    for name in ("bin/urxe", "lib/liburxe.so", "tests/verbs_checker", "tests/verbs_bad_input",
                 "tests/verbs_many"):
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        shutil.copy(f"{BUILD}/{name}", f"{folder}/{name}")
    return folder, PRELOAD.replace(BUILD, folder)


# --- ports

_claims = []


def free_port():
    """A TCP port that no other test uses: claimed by an abstract socket of this process."""
    for port in range(20000 + os.getpid() % 5000, 32000):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0urxe-test-port-{port}")
            with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
                probe.bind(("::", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port
    raise AssertionError("no free port")
