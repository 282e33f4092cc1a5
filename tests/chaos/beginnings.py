#!/usr/bin/env python3
"""Runs that begin, and whose members change soon after: what is said, and how they end."""
import math
import re
import signal

from _forger import Forger, flip
from _ports import free_ports
from _scene import check, read_json, run_tests, wait_until
from losses import Hands, wait_for_views


def nobody_trains_before_all_have_come(scene):
    """Rank 2 of a ring is never started: 0, which has both its neighbours, has begun. So have all
    others on a path but its neighbour, and they end with it."""
    for nodes, family, missing in ((4, "ring", 2), (5, "path", 4)):
        path = scene.experiment(
            topology={"nodes": nodes, "family": family},
            membership={"on_loss": "continue", "grace_s": 30},
            transport={"connect_timeout_s": 3, "round_timeout_s": 60},
        )
        roster = scene.roster(free_ports(nodes))
        agents = [
            scene.start("agent", path, "--rank", str(rank), "--roster", roster)
            for rank in range(nodes)
            if rank != missing
        ]
        for running in agents:
            running.wait(30).check_refused(f"agent {missing} (127.0.0.1:", "come up", code=1)


def a_part_below_half_says_so(scene):
    """At each loss, and at the end, whose exit code is 3; in its files it names who is missing."""
    hands = Hands(scene, rounds=2000)
    left = hands.agents[1]
    for views, rank in enumerate((3, 0, 2), 1):
        hands.kill(rank)
        wait_for_views(scene, 1, views, left.folder)
    left.ends(3, 60)
    for words in (
        r"warning rank \d: round \d+: agent 0 is lost: ",
        r"warning rank \d: round \d+: 3 of 4 nodes go on, .*; lost: 3; a new process may take",
        r"warning rank \d: round \d+: 1 of 4 nodes go on, .*; lost: 0, 2, 3; a new process",
        "warning: 3 of the 4 agents that the run began with did not come to its end.*exit code 3",
    ):
        found = re.findall(words, left.err)
        check(len(found) == 1, f"{words}: {len(found)} times in {left.err!r}")
    summary, about = (read_json(left.folder, name) for name in ("summary.json", "run-1.json"))
    check(summary["members"] == [1] and summary["minority"] is True, f"{summary}")
    named = re.findall(r"agent (\d+) \(lost in round \d+ of 2000\)", summary["missing"])
    check(named == ["0", "2", "3"], f"missing: {summary['missing']!r}")
    check((about["outcome"], about["why"]) == ("done", summary["missing"]), f"{about}")


def who_exchanges_nothing_is_told(scene):
    """Its period is longer than the run."""
    algorithm = {"name": "local-sgd", "period": 50}
    ended = scene.call("run", scene.experiment(algorithm=algorithm, rounds=20, topology__nodes=3))
    ended.check_well()
    said = re.findall(r"warning rank \d: no exchange took place in 20 rounds: .*", ended.err)
    check(len(said) == 1 and "one each 50 rounds" in said[0], f"{ended.err!r}")


def a_wait_is_a_warning_once(scene):
    """For who is not there, and for who is stopped; what follows of the same is none."""
    hands = Hands(scene, rounds=2000000)
    hands.agents[2].process.send_signal(signal.SIGSTOP)
    hands.agents[1].wait_for("waiting: edge 2->1", 30)
    said = [line for line in hands.agents[1].err.splitlines() if "waiting: edge" in line]
    check(len(said) == 1 and "is its host reachable?" in said[0], f"{said}")
    check("s left (transport.round_timeout_s)" in said[0], f"how long still: {said}")
    hands.end()


def who_is_lost_for_wrong_frames_is_lost_for_that(scene):
    """A wire flips bits between rank 0 and all others."""
    ports = free_ports(3)
    wire = Forger(1, [ports[0]] * 2, math.inf, 30000, 300000, {"flipped": flip})
    changes = {"topology__nodes": 3, "rounds": 2000000, "transport__reconnect_s": 1}
    path = scene.experiment(membership={"on_loss": "continue", "grace_s": 4}, **changes)
    wire.start()
    agents = []
    for rank, port in enumerate((ports[0], *wire.ports)):
        roster = scene.roster((port, *ports[1:]), f"roster{rank}")
        agents.append(scene.agent(path, rank, roster, "--run-id", "7"))
    true = re.compile(r"warning rank \d: .*agent \d is lost: .*agent \d sent a malformed frame: ")
    wait_until(lambda: any(true.search(each.said) for each in agents), "the reason")
    said = "".join(each.said for each in agents)
    check("silent for longer than" not in said, f"nobody was silent: {said[-2000:]!r}")
    for running in agents:
        running.kill()
    wire.stop()


if __name__ == "__main__":
    run_tests()
