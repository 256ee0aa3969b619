"""Events of rdma_cm that have their cause outside the program: events.py WORLD"""

import contextlib
import os
import re
import subprocess
import sys
import time

from tests.compat import nodes, pair, suite
from tests.compat.rdma_cm import programs

PROGRAM = f"{nodes.BUILD}/tests/cm_events"
PORT = 20000


class End:
    """A process of cm_events, and what it has said so far."""

    def __init__(self, stack, runner, node, arguments):
        self.node = node
        self.process, self.finish = stack.enter_context(
            runner.started(node, [PROGRAM] + arguments, arguments[0]))
        self.path = os.path.join(runner.folder, f"{runner.number:03}-{arguments[0]}.out")

    def wait_for(self, pattern, seconds=20):
        deadline = time.monotonic() + seconds * nodes.SLOWNESS
        while not (found := re.search(pattern, pair.read(self.path))):
            assert time.monotonic() < deadline, f"no {pattern!r} in {pair.read(self.path)!r}"
            time.sleep(0.02)
        return found

    def ask_for(self, event):
        command = list(self.node.prefix) + [nodes.URXE, "event", str(self.process.pid), "rxe0",
                                            event]
        subprocess.run(command, check=True, timeout=20, env=pair.environment())

    def link(self, *change):
        nodes.run(*self.node.prefix, "ip", "link", *change)


@contextlib.contextmanager
def connected(world, runner):
    with contextlib.ExitStack() as stack:
        address = [world.server.address, str(PORT)]
        server = End(stack, runner, world.server, ["server"] + address)
        server.wait_for("listening")
        client = End(stack, runner, world.client, ["client"] + address)
        client.wait_for("client: RDMA_CM_EVENT_ESTABLISHED 0")
        server.wait_for("connection: RDMA_CM_EVENT_ESTABLISHED 0")
        yield server, client


def client_device_removed(world, runner):
    with connected(world, runner) as (server, client):
        client.ask_for("device_fatal")
        client.wait_for("client: RDMA_CM_EVENT_DEVICE_REMOVAL 0")
        client.wait_for("disconnect: No such device or address")
        client.wait_for("destroyed")
        assert client.finish().status == 0
        server.wait_for("connection: RDMA_CM_EVENT_DISCONNECTED 0")


def server_device_removed(world, runner):
    """Listener and connection are told; the program listens anew, and is found again."""
    with connected(world, runner) as (server, client):
        server.ask_for("device_fatal")
        server.wait_for("(?m)^listener: RDMA_CM_EVENT_DEVICE_REMOVAL 0")
        server.wait_for("(?m)^connection: RDMA_CM_EVENT_DEVICE_REMOVAL 0")
        client.wait_for("client: RDMA_CM_EVENT_DISCONNECTED 0")
        server.wait_for("(?s)destroyed.*destroyed")
        with contextlib.ExitStack() as stack:
            second = End(stack, runner, world.client, ["client", world.server.address, str(PORT)])
            second.wait_for("client: RDMA_CM_EVENT_ESTABLISHED 0")


def link_address_changed(world, runner):
    with connected(world, runner) as (server, client):
        client.link("set", "eth0", "address", "02:00:00:00:83:02")
        client.wait_for("client: RDMA_CM_EVENT_ADDR_CHANGE 0")
        assert "ADDR_CHANGE" not in pair.read(server.path), "the other end's has not changed"
        server.ask_for("device_fatal")
        client.wait_for("client: RDMA_CM_EVENT_DISCONNECTED 0", 60)


def address_removed(world, runner):
    """Linux says nothing of it to rdma_cm, and neither do we."""
    with connected(world, runner) as (_, client):
        client.link("set", "eth0", "down")
        nodes.run(*world.client.prefix, "ip", "address", "delete", f"{world.client.address}/24",
                  "dev", "eth0")
        time.sleep(1)
        said = pair.read(client.path)
        assert "REMOVAL" not in said and "CHANGE" not in said, said
        nodes.run(*world.client.prefix, "ip", "address", "add", f"{world.client.address}/24", "dev",
                  "eth0")
        client.link("set", "eth0", "up")


def interface_removed(world, runner):
    """The veth pair goes, and with it both devices."""
    with connected(world, runner) as (server, client):
        client.link("delete", "eth0")
        client.wait_for("client: RDMA_CM_EVENT_DEVICE_REMOVAL 0")
        server.wait_for("(?m)^listener: RDMA_CM_EVENT_DEVICE_REMOVAL 0")
        server.wait_for("(?m)^connection: RDMA_CM_EVENT_DEVICE_REMOVAL 0")


def unreachable(world, runner, address):
    """As the kernel says it, but within seconds."""
    with contextlib.ExitStack() as stack:
        client = End(stack, runner, world.client, ["client", address, str(PORT)])
        # -ETIMEDOUT
        found = client.wait_for(r"client: RDMA_CM_EVENT_UNREACHABLE -110 after (\d+) ms", 20)
        milliseconds = int(found.group(1))
        print(f"  known after {milliseconds} ms")
        assert 2000 < milliseconds < 8000 * nodes.SLOWNESS
        assert client.finish().status == 0


def late_server(world, runner):
    """A server that starts a second after its client is found, if it is the only one there."""
    with contextlib.ExitStack() as stack:
        address = [world.server.address, str(PORT)]
        client = End(stack, runner, world.client, ["client"] + address)
        client.wait_for("client: RDMA_CM_EVENT_ROUTE_RESOLVED 0")
        time.sleep(1)
        End(stack, runner, world.server, ["server"] + address)
        client.wait_for("client: RDMA_CM_EVENT_ESTABLISHED 0", 5)


def main():
    nobody = "10.83.0.9" if sys.argv[1].startswith("netns") else "127.0.0.9"
    cases = {
        "no host has the address": lambda w, r: unreachable(w, r, nobody),
        "the client's device is removed": client_device_removed,
        "the server's device is removed": server_device_removed,
    }
    if sys.argv[1].startswith("netns"):
        cases["no process is at the address"] = lambda w, r: unreachable(w, r, w.server.address)
        cases["the server comes late"] = late_server
        cases["the client's link address changes"] = link_address_changed
        cases["the client's address is removed"] = address_removed
        cases["the interface is removed"] = interface_removed  # the last: nothing is left
    return suite.run(sys.argv[1], cases.items())


if __name__ == "__main__":
    sys.exit(main())
