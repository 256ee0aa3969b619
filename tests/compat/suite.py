"""Runs a script's cases in a world, one after the other, and says what came of each."""

import os
import time

from tests.compat import nodes, pair


def run(world_name, cases, patience=pair.PATIENCE):
    """The script's exit status. `cases` are pairs of a name and a function of the world and a
    pair.Runner, which raises an AssertionError if it fails; what cannot run here is skipped."""
    reason = nodes.why_no_world(world_name)
    if reason:
        print(f"SKIPPED: {reason}")
        return 0
    user = "root" if os.geteuid() == 0 else nodes.UNPRIVILEGED
    failed = []
    with nodes.worlds()[world_name]() as world, pair.folder() as folder:
        runner = pair.Runner(world, user, folder, capture=False, patience=patience)
        for name, case in cases:
            started = time.monotonic()
            try:
                case(world, runner)
                print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
            except AssertionError as error:
                failed.append(name)
                print(f"FAILED {name}: {error}", flush=True)
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0
