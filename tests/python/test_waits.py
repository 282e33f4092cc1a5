#!/usr/bin/env python3
"""Every call that waits says so after five seconds, once, as a warning: for whom."""
import re

from _package import imported
from _peers import ONES, Peers
from _scene import check, run_tests

WAITS = 7  # seconds, of which a warning wants five
HEAD = f"""
    {ONES}
    def train(peer, seconds={WAITS}):
        until = time.time() + seconds
        while time.time() < until:
            peer.mix()
            time.sleep(0.1)
"""
CALLS = {
    "average": """
    with join(x) as peer:
        train(peer, 0.3)
        if RANK == 0:
            peer.average()
        else:
            train(peer)
    """,
    "leave": """
    with join(x) as peer:
        train(peer, 0.3 if RANK == 0 else 7)
    """,
    "a round": """
    with join(x) as peer:
        for _ in range(3):
            peer.mix()
        time.sleep(0 if RANK == 0 else 7)
        peer.mix()
    """,
    "start": """
    time.sleep(0 if RANK == 0 else 7)
    join(x).leave()
    """,
    "sum": """
    with join(x) as peer:
        time.sleep(0 if RANK == 0 else 7)
        peer.mean(x)
    """,
}


def test_calls_that_wait(scene):
    started = {}
    for i, (call, body) in enumerate(CALLS.items()):
        started[call] = Peers(scene, HEAD + body, name=f"peer{i}.py")
    for call, peers in started.items():
        for rank, (code, out, said) in enumerate(peers.wait()):
            check(code == 0, f"{call}, rank {rank}: {said}")
            lines = [line for line in said.splitlines() if "has waited" in line]
            if rank == 0:
                check(len(lines) == 1 and lines[0].startswith(f"{call} has waited 5 s"), said)
                told = re.search(r"all others to call it|\b1\b", lines[0].split("5 s", 1)[1])
                check(told, lines)
            else:
                check(not lines, lines)


GROUP = """
    import torch, torch.distributed as dist
    place = f"file://{os.getcwd()}/rendezvous"
    dist.init_process_group("gloo", init_method=place, rank=RANK, world_size=2)
    x = torch.full((4,), float(RANK))
    one = {"topology": {"nodes": 1, "family": "complete"}}
    with starling.join(one, x, group=dist.group.WORLD, same_start=True) as peer:
        peer.mix()
        time.sleep(0 if RANK == 1 else 7)
        peer.mix()
    print(x.tolist(), flush=True)
    os._exit(0)
"""


def test_processes_of_a_group(scene):
    imported("torch")
    for rank, (code, out, said) in enumerate(Peers(scene, GROUP).wait()):
        check(code == 0 and out == "[0.0, 0.0, 0.0, 0.0]\n", (code, out, said))
        lines = [line for line in said.splitlines() if "has waited" in line]
        check(len(lines) == rank, said)
        check(all("process 1 has waited 5 s for process 0 of the group" in x for x in lines), said)


if __name__ == "__main__":
    run_tests()
