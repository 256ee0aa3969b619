"""Open MPI over UCX, ucx_perftest and libfabric on urxe: programs.py WORLD [WORD...]

In world `one` all processes share an address. libfabric takes no loopback interface, and is tested
in the others. An MPI job of two namespaces has two ranks in each. With words only cases run whose
names have one of them.
"""

import os
import shutil
import subprocess
import sys

from tests.compat import suite

NEEDED = ("mpirun", "mpicxx", "ucx_perftest", "fi_pingpong")
UCX_PORT = 13337
FABRIC_PORT = 47592
# What UCX is to use: RC, or UD alone. It connects RC by datagrams, which is what `rc_v` adds.
TRANSPORTS = ("rc_v,self", "ud_verbs,self")
UCX_TESTS = ("tag_lat", "tag_bw", "stream_lat", "ucp_am_lat", "ucp_put_lat", "ucp_put_bw",
             "ucp_get")
UCX_ATOMICS = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")


def build_program(folder):
    program = os.path.join(folder, "collectives")
    source = os.path.join(os.path.dirname(__file__), "collectives.cc")
    subprocess.run(["mpicxx", "-std=c++17", "-O1", "-o", program, source], check=True, timeout=120)
    return program


def ucx(transports):
    return ["env", f"UCX_TLS={transports}", "UCX_NET_DEVICES=rxe0:1"]


def write_agent(world, folder):
    """What mpirun calls in the place of ssh: its command runs in the other namespace, by another
    host's name, since Open MPI tells hosts apart by that."""
    agent = os.path.join(folder, "agent")
    enter = " ".join(world.client.prefix)
    with open(agent, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nshift  # the host: there is but one\ncommand=\"$*\"\n"
                   f"exec {enter} unshare --uts sh -c \"hostname urxe-b; $command\"\n")
    os.chmod(agent, 0o755)
    return agent


def hosts(world, folder, ranks):
    """Options of mpirun that place half of the ranks on each node."""
    half = ranks // 2
    return ["--host", f"{world.server.address}:{half},{world.client.address}:{half}",
            "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", write_agent(world, folder),
            "--mca", "oob_tcp_if_include", "eth0"]


def run_mpi(world, runner, transports, ranks):
    program = build_program(runner.folder)
    # Not Open MPI's own transports.
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), "--mca", "pml", "ucx", "--mca", "osc",
               "ucx", "--mca", "btl", "^openib,tcp,vader", "--mca", "orte_tmpdir_base",
               runner.folder]
    spread = world.server.prefix != world.client.prefix
    if spread:
        command += hosts(world, runner.folder, ranks)
    end = runner.alone(ucx(transports) + command + [program], world.server)
    said = f"{ranks} ranks on {2 if spread else 1} hosts: all data right"
    assert end.status == 0 and said in end.output, end


def run_pair(world, runner, server, client, port):
    both = runner.both(server, client, port)
    assert both.client.status == 0, both
    return both


def run_ucx(world, runner, transports, test):
    size = "8" if test in UCX_ATOMICS else "4096"
    command = ucx(transports) + ["ucx_perftest"]
    run_pair(world, runner, command, command + [
        world.server.address, "-t", test, "-n", "200", "-w", "10", "-s", size], UCX_PORT)


def run_fabric(world, runner):
    command = ["fi_pingpong", "-p", "verbs", "-e", "msg", "-I", "50", "-c"]
    run_pair(world, runner, command, command + [world.server.address], FABRIC_PORT)


def cases(world_name):
    """Names, and functions of the world and the runner."""
    shared = not world_name.startswith("netns")
    for transports in TRANSPORTS:
        yield (f"mpi {'4' if shared else '2 and 2'} ranks {transports}",
               lambda world, runner, t=transports: run_mpi(world, runner, t, 4))
        for test in UCX_TESTS + UCX_ATOMICS:
            yield (f"ucx_perftest {test} {transports}",
                   lambda world, runner, t=transports, n=test: run_ucx(world, runner, t, n))
    if not shared:
        yield "fi_pingpong", run_fabric


def main():
    world_name, only = sys.argv[1], sys.argv[2:]
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        print(f"SKIPPED: {' and '.join(missing)} not installed (tools/setup --test)")
        return 0
    os.environ.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    chosen = [(name, case) for name, case in cases(world_name)
              if not only or any(word in name for word in only)]
    return suite.run(world_name, chosen)


if __name__ == "__main__":
    sys.exit(main())
