#!/usr/bin/env python3
"""Agents started one by one with a roster, as on several hosts: they train, or say why not."""
import os
import shutil
import time

from _ports import free_ports
from _scene import check, run_tests
from _wire import Wire

PAIR = {"rounds": 30, "record__every": 10, "topology": {"nodes": 2, "family": "ring"}}


def start_pair(scene, first, second, extra=((), ()), rosters=None):
    """Two agents, each with its own experiment file, as two hosts have."""
    rosters = rosters or [scene.roster(free_ports(2))] * 2
    pair = []
    for rank, changes in enumerate((first, second)):
        path = scene.experiment(f"{rank}.json", **{**PAIR, **changes})
        shutil.rmtree(scene.path(f"out{rank}"), ignore_errors=True)
        pair.append(scene.agent(path, rank, rosters[rank], *extra[rank]))
    return pair


def both_sides_name_what_differs(scene):
    """With both values, as each has it (test_agent has what else); name and record may differ."""
    pair = [each.wait(30) for each in start_pair(scene, {}, {"optimizer__learning_rate": 0.375})]
    for running, words in zip(pair, ("0.01 here, 0.375 at agent 1", "0.375 here, 0.01 at agent 0")):
        running.check_refused("refused", f"optimizer.learning_rate: {words}", code=1)
    for running in start_pair(scene, {}, {}, (("--run-id", "1"), ("--run-id", "2"))):
        running.wait(30).check_refused("run id", "refused", code=1)
    for running in start_pair(scene, {"name": "left"}, {"record__every": 5}):
        running.wait(60).check_well()
    scene.check_models(["out0", "out1"], experiment=scene.path("0.json"))
    for rank in (0, 1):
        check(os.path.exists(scene.path(f"out{rank}/summary.json")), f"no summary of rank {rank}")


def memory_that_is_not_had_is_done_without(scene):
    """Of another user, or longer than files may be: it is said once, and bits are the same."""
    os.chmod(scene.path(""), 0o777)
    limited = ("sh", "-c", 'ulimit -f 2000; exec "$@"', "sh")
    other = ("setpriv", "--reuid=65534", "--clear-groups")
    rows = [(limited, "transport.memory: ", "cannot be had: RLIMIT_FSIZE")]
    if os.geteuid() == 0:
        rows.append((other, "transport.memory: data goes through the connection", "another user"))
    for wrapper, said, why in rows:
        roster, path = scene.roster(free_ports(2)), scene.experiment(**PAIR)
        pair = [scene.agent(path, 0, roster, out=f"{why[-4:]}0")]
        pair.append(scene.agent(path, 1, roster, out=f"{why[-4:]}1", wrapper=wrapper))
        for running in pair:
            running.wait(60).check_well()
        check(pair[1].said.count(said) == 1 and why in pair[1].said, (pair[0].said, pair[1].said))
        scene.check_models([f"{why[-4:]}{rank}" for rank in (0, 1)], experiment=path)


class SlowWire(Wire):
    RATE = 200000  # bytes a second, of both ways

    def passes(self, pair, end, data):
        time.sleep(len(data) / self.RATE)
        return data


def a_long_frame_on_a_slow_link_is_no_death(scene):
    """A frame takes several times transport.timeout_s; its bytes keep coming."""
    ports = free_ports(2)
    wire = SlowWire(ports[0])
    wire.start()
    slow = {
        "rounds": 1,
        "record__every": 1,
        "model__hidden": [400],
        "transport": {
            "timeout_s": 4,
            "connect_timeout_s": 60,
            "chunk_bytes": 1 << 20,
            "memory": "off",
        },
    }
    rosters = [scene.roster((first, ports[1]), f"r{first}") for first in (ports[0], *wire.ports)]
    try:
        for running in start_pair(scene, slow, slow, [("--run-id", "1")] * 2, rosters):
            running.wait(60).check_well()
            check(running.seconds > 8, f"the link was not slow: {running.seconds:.1f} s")
    finally:
        wire.stop()


if __name__ == "__main__":
    run_tests()
