"""What scripts about keys share: keys, rosters with fingerprints, and pairs that train."""

from _ports import free_ports
from strangers import start

SEALED = {"security__seal": "on"}
RUN_ID = 0x5EC2E75EC2E75EC2


def make_keys(scene, *names):
    for name in names:
        scene.call("keys", "make", "-o", scene.path(name)).check_well()


def make_nodes(scene, count):
    """The fingerprints of node-0, node-1, ..."""
    made = [
        scene.call("keys", "make", "--node", "-o", scene.path(f"node-{rank}"))
        for rank in range(count)
    ]
    return [one.out.strip() for one in made]


def with_key(name):
    return ("--set", f"security.key={name}")


def with_pair(name):
    return (*with_key(name), "--set", "security.mode=certificates")


def train(scene, experiment, extra, pins=("", ""), tap=None, run_id=RUN_ID):
    """Two agents, of which rank 1 may go through a tap to rank 0, as they ended."""
    ports = free_ports(2) if tap is None else (tap.target, free_ports(1)[0])
    rosters = [scene.roster(ports, "roster", pins)] * 2
    if tap is not None:
        rosters[1] = scene.roster((tap.port, ports[1]), "roster-1", pins)
    running = [
        start(scene, experiment, i, rosters[i], f"out{i}", "--run-id", str(run_id), *extra[i])
        for i in range(2)
    ]
    return [one.wait(120) for one in running]


def check_both(scene, experiment, ended):
    for one in ended:
        one.check_well()
    scene.check_models(["out0", "out1"], experiment=experiment)


def start_as(scene, experiment, rank, ports, out, pins, extra):
    roster = scene.roster(ports, f"roster-{out}", pins)
    return start(scene, experiment, rank, roster, out, "--run-id", str(RUN_ID), *extra)
