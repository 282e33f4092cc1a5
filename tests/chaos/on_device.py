#!/usr/bin/env python3
"""Membership with the model on a device, the emulated one: an agent is lost for good, and another
returns and takes the others' model."""
import os
import signal

from _scene import check, run_tests
from losses import IMPATIENT, check_repeated, events, start, stop_until_lost, told_losses
from losses import wait_for_views


def one_is_killed_and_one_returns(scene):
    """With a replica of each neighbour, which begins anew."""
    scene.emulate_device()
    compressor = {"name": "float16"}
    algorithm = {"name": "choco-sgd", "replicas": "per-neighbour", "compressor": compressor}
    changes = {"device": "cuda:0", "model": "softmax", "rounds": 900, "algorithm": algorithm}
    running, agents = start(scene, nodes=4, membership__grace_s=IMPATIENT, **changes)
    os.kill(agents[2], signal.SIGKILL)
    wait_for_views(scene, 0, 1)
    stop_until_lost(scene, agents, 1)
    running.ends(3, 60)
    check([loss["node"] for loss in told_losses(scene)] == [2, 1], f"{told_losses(scene)}")
    for rank in (0, 1, 3):
        view = events(scene, rank, "view")[-1]
        check(view["members"] == [0, 1, 3], f"agent {rank} ends with {view}")
    check(len(events(scene, 1, "join")) == 1, "agent 1 has not joined again")
    check_repeated(scene)


if __name__ == "__main__":
    run_tests()
