#!/usr/bin/env python3
"""Runs that begin, or go on from a checkpoint, and whose members change soon after: what is said,
and how they end.

usage: beginnings.py STARLING [TEST ...]
"""
import json
import os
import re
import shutil
import signal
import time

from _ports import free_ports
from _tap import Tap
from _scene import SLOWER, check, run_tests
from losses import Hands, events, leave, wait_for_return, wait_for_views

SAVES = {"rounds": 2000000, "checkpoint": {"every": 100, "keep": 3}}


def wait_until(holds, what):
    until = time.monotonic() + SLOWER * 60
    while not holds():
        check(time.monotonic() < until, f"{what}: not in time")
        time.sleep(0.02)


def save_and_end(running, *others):
    """SIGUSR2 to the first: all end after a checkpoint."""
    running.process.send_signal(signal.SIGUSR2)
    for each in (running, *others):
        each.wait(60)
        check(each.code == 75, f"exit code {each.code}: {each.err!r}")
        check("ended on request, after a checkpoint" in each.all_err, f"{each.all_err!r}")


def trains_again(scene, rank, folder):
    return trains_on(scene, rank, 1, folder)


def resume_by_hand(scene, hands):
    for rank, running in enumerate(hands.agents):
        words = ["--resume", running.folder, "--rank", str(rank), "--roster", hands.roster]
        hands.agents[rank] = scene.start("agent", *words)
        hands.agents[rank].folder = running.folder
    watched = hands.agents[1].folder
    wait_until(lambda: trains_again(scene, 1, watched), "a checkpoint after the resume")


def agents_by_hand_lose_one_after_a_resume(scene):
    """It joins again, and another one leaves."""
    hands = Hands(scene, **SAVES)
    save_and_end(*hands.agents)
    resume_by_hand(scene, hands)
    watched = hands.agents[1].folder
    hands.kill(3)
    wait_for_views(scene, 1, 1, watched)
    hands.agents[3] = hands.start(3, "--join")
    wait_for_views(scene, 1, 2, watched)
    hands.agents[2].process.send_signal(signal.SIGTERM)
    wait_for_views(scene, 1, 3, watched)
    hands.agents[2].wait(60)
    check(hands.agents[2].code == 75, f"{hands.agents[2].code}: {hands.agents[2].err!r}")
    views = [view["members"] for view in events(scene, 1, "view", watched)]
    check(views == [[0, 1, 2], [0, 1, 2, 3], [0, 1, 3]], f"{views}")
    save_and_end(hands.agents[0], hands.agents[1], hands.agents[3])


def a_run_loses_one_after_a_resume(scene):
    membership = {"on_loss": "continue", "grace_s": 30, "restart": "on-failure"}
    changes = {**SAVES, "topology__nodes": 4, "membership": membership}
    running = scene.start("run", scene.experiment(**changes), "--out", scene.path("run"))
    running.wait_for("round 40/")
    running.process.send_signal(signal.SIGTERM)
    check(running.wait(60).code == 75, f"exit code {running.code}: {running.err!r}")
    running = scene.start("run", "--resume", scene.path("run"))
    wait_until(lambda: trains_again(scene, 0, "run"), "a checkpoint after the resume")
    os.kill(scene.agents()[2], signal.SIGKILL)
    wait_for_return(scene, running, 2)
    leave(scene.agents(), 3)
    wait_for_views(scene, 0, 3)
    running.process.send_signal(signal.SIGTERM)
    check(running.wait(60).code == 75, f"exit code {running.code}: {running.err!r}")
    again = scene.call("sim", scene.path("run"), "--replay", "--out", scene.path("again"))
    again.check_refused("a run that has lost members is repeated if it came to its end")


def the_same_command_begins_joins_and_goes_on(scene):
    """As a unit file calls it, again and again: with one option of a folder, and none of how."""
    path = scene.experiment(
        **{**SAVES, "topology__nodes": 3, "membership": {"on_loss": "continue", "grace_s": 30}}
    )
    roster = scene.write("roster", "".join(f"127.0.0.1:{p}\n" for p in free_ports(3)))

    def start(rank):
        words = ["--rank", str(rank), "--roster", roster, "--out", scene.path(f"own{rank}")]
        return scene.start("agent", path, *words)

    agents = [start(rank) for rank in range(3)]
    agents[1].wait_for("round 40/")
    wait_until(lambda: events(scene, 1, "checkpoint", "own1"), "a checkpoint")
    for rank in (2, 0):  # whom the others dial, and who dials them
        agents[rank].process.kill()
        agents[rank].process.wait()
        views = len(events(scene, 1, "view", "own1"))
        agents[rank] = start(rank)
        wait_until(lambda: len(events(scene, 1, "view", "own1")) > views + 1, "its return")
        agents[rank].wait_for("trains already, and this one joins it")
    save_and_end(*agents)
    agents = [start(rank) for rank in range(3)]
    for running in agents:
        running.wait_for("goes on from the checkpoint of round")
    save_and_end(*agents)


def who_is_left_goes_on_after_a_stop(scene):
    """Rank 1 and its disk are lost for good. The others are stopped, and go on without it, several
    times; a new process of its rank joins them, from an empty folder."""
    for algorithm in ("d-psgd", "choco-sgd", "sgp", "all-reduce"):
        membership = {"on_loss": "continue", "grace_s": 5}
        path = scene.experiment(
            **{**SAVES, "topology__nodes": 4, "algorithm": algorithm, "membership": membership}
        )
        roster = scene.write("roster", "".join(f"127.0.0.1:{p}\n" for p in free_ports(4)))

        def folder_of(rank):
            return f"{algorithm}{rank}"

        def start(rank):
            words = ["--roster", roster, "--out", scene.path(folder_of(rank))]
            return scene.start("agent", path, "--rank", str(rank), *words)

        agents = [start(rank) for rank in range(4)]
        agents[0].wait_for("round 40/")
        agents[1].process.kill()
        agents[1].process.wait()
        shutil.rmtree(scene.path(folder_of(1)))
        left = (0, 2, 3)
        wait_for_views(scene, 0, 1, folder_of(0))
        for times in (1, 2):
            save_and_end(*(agents[rank] for rank in left))
            for rank in left:
                agents[rank] = start(rank)
            wait_for_views(scene, 0, 1 + times, folder_of(0))
            wait_until(lambda: trains_on(scene, 0, times, folder_of(0)), "a checkpoint")
        agents[1] = start(1)
        wait_for_views(scene, 0, 4, folder_of(0))
        views = [view["members"] for view in events(scene, 0, "view", folder_of(0))]
        check(views == [[0, 2, 3]] * 3 + [[0, 1, 2, 3]], f"{algorithm}: {views}")
        save_and_end(*agents)


def a_further_rank_joins_again_after_a_stop(scene):
    """By the same command as the others: there is none of theirs that it could begin with."""
    membership = {"on_loss": "continue", "grace_s": 5, "joiners": 1}
    path = scene.experiment(
        **{**SAVES, "topology__nodes": 3, "algorithm": "choco-sgd", "membership": membership}
    )
    roster = scene.write("roster", "".join(f"127.0.0.1:{p}\n" for p in free_ports(4)))

    def start(rank):
        words = ["--roster", roster, "--out", scene.path(f"own{rank}")]
        return scene.start("agent", path, "--rank", str(rank), *words)

    for views in (1, 3):
        agents = [start(rank) for rank in range(3)]
        agents[0].wait_for("round ")
        agents.append(start(3))
        wait_for_views(scene, 0, views, "own0")
        save_and_end(*agents)
    seen = [view["members"] for view in events(scene, 0, "view", "own0")]
    check(seen == [[0, 1, 2, 3], [0, 1, 2], [0, 1, 2, 3]], f"{seen}")


def trains_on(scene, rank, resumes, folder):
    starts = [event["time"] for event in events(scene, rank, "start", folder)]
    saved = [event["time"] for event in events(scene, rank, "checkpoint", folder)]
    return len(starts) == resumes + 1 and saved[-1] > starts[-1]


def who_is_left_goes_on_after_a_power_cut(scene):
    """Right after a loss, long before the next checkpoint is due."""
    membership = {"on_loss": "continue", "grace_s": 5}
    path = scene.experiment(
        **{**SAVES, "topology__nodes": 4, "checkpoint__every": 1000000, "membership": membership}
    )
    roster = scene.write("roster", "".join(f"127.0.0.1:{p}\n" for p in free_ports(4)))

    def start(rank):
        words = ["--roster", roster, "--out", scene.path(f"own{rank}")]
        return scene.start("agent", path, "--rank", str(rank), *words)

    agents = [start(rank) for rank in range(4)]
    agents[0].wait_for("round 40/")
    agents[1].process.kill()
    agents[1].process.wait()
    left = (0, 2, 3)
    for rank in left:
        wait_until(lambda: events(scene, rank, "checkpoint", f"own{rank}"), "a checkpoint")
    for rank in left:
        agents[rank].process.kill()
        agents[rank].process.wait()
    agents = [start(rank) for rank in left]
    wait_for_views(scene, 0, 2, "own0")
    saved = events(scene, 0, "checkpoint", "own0")[0]["round"]
    first, second = events(scene, 0, "view", "own0")
    check(saved == first["round"] and second["round"] == saved + 1, f"{first}, {saved}, {second}")
    save_and_end(*agents)


def a_run_without_one_goes_on_after_a_stop(scene):
    """It was lost when the checkpoint was written: it is started, and joins."""
    membership = {"on_loss": "continue", "grace_s": 30, "restart": "never"}
    path = scene.experiment(**{**SAVES, "topology__nodes": 4, "membership": membership})
    running = scene.start("run", path, "--out", scene.path("run"))
    running.wait_for("round 40/")
    os.kill(scene.agents()[2], signal.SIGKILL)
    wait_for_views(scene, 0, 1)
    views = events(scene, 0, "view")
    wait_until(
        lambda: any(e["round"] > views[0]["round"] for e in events(scene, 0, "checkpoint")),
        "a checkpoint",
    )
    save_and_end(running)
    told = scene.call("checkpoint", scene.path("run")).out.splitlines()[-1]
    check(told.endswith("whole, sums right; of the nodes that trained then"), told)
    running = scene.start("run", "--resume", scene.path("run"))
    running.wait_for("agent 2 has returned in round")
    save_and_end(running)
    views = [view["members"] for view in events(scene, 0, "view")]
    check(views == [[0, 1, 3], [0, 1, 3], [0, 1, 2, 3]], f"{views}")
    again = scene.call("sim", scene.path("run"), "--replay", "--out", scene.path("again"))
    again.check_refused("a run that has lost members is repeated if it came to its end")


def nobody_trains_before_all_have_come(scene):
    """Rank 2 of a ring is never started: 0, which has both its neighbours, has begun. So have all
    others on a path but its neighbour, and they end with it."""
    for nodes, family, missing in ((4, "ring", 2), (5, "path", 4)):
        transport = {"connect_timeout_s": 3, "round_timeout_s": 60}
        path = scene.experiment(
            topology={"nodes": nodes, "family": family},
            membership={"on_loss": "continue", "grace_s": 30},
            transport=transport,
        )
        lines = "".join(f"127.0.0.1:{port}\n" for port in free_ports(nodes))
        roster = scene.write("roster", lines)
        agents = {
            rank: scene.start("agent", path, "--rank", str(rank), "--roster", roster)
            for rank in range(nodes)
            if rank != missing
        }
        for rank, running in agents.items():
            running.wait(30).check_refused(f"agent {missing} (127.0.0.1:", "come up", code=1)


def a_part_below_half_says_so(scene):
    """At each loss, and at the end, whose exit code is 3."""
    hands = Hands(scene, rounds=30000)
    left = hands.agents[1]
    for views, rank in enumerate((3, 0, 2), 1):
        hands.kill(rank)
        wait_for_views(scene, 1, views, left.folder)
    left.wait(60)
    check(left.code == 3, f"exit code {left.code}: {left.err!r}")
    for words in (
        r"warning: round \d+: agent 0 is lost: ",
        r"warning: round \d+: 3 of 4 nodes go on, .*; lost: 3; a new process may take",
        r"warning: round \d+: 1 of 4 nodes go on, .*; lost: 0, 2, 3; a new process",
        "warning: 3 of the 4 agents that the run began with did not come to its end.*exit code 3",
    ):
        found = re.findall(words, left.err)
        check(len(found) == 1, f"{words}: {len(found)} times in {left.err!r}")
    with open(f"{left.folder}/summary.json") as file:
        summary = json.load(file)
    check(summary["members"] == [1] and summary["minority"] is True, f"{summary}")


def whoever_leaves_leaves_no_minority(scene):
    """Three of four leave on purpose."""
    hands = Hands(scene, rounds=30000, checkpoint=SAVES["checkpoint"])
    for views, rank in enumerate((3, 0, 2), 1):
        hands.agents[rank].process.send_signal(signal.SIGTERM)
        wait_for_views(scene, 1, views, hands.agents[1].folder)
    hands.agents[1].wait(60).check_well()
    with open(f"{hands.agents[1].folder}/summary.json") as file:
        summary = json.load(file)
    check(summary["members"] == [1] and summary["minority"] is False, f"{summary}")
    check("missing" not in summary, f"{summary}")


def who_exchanges_nothing_is_told(scene):
    """Its period is longer than the run."""
    algorithm = {"name": "local-sgd", "period": 50}
    ended = scene.call("run", scene.experiment(algorithm=algorithm, rounds=20, topology__nodes=3))
    ended.check_well()
    said = re.findall("warning: agent .: no exchange took place in 20 rounds: .*", ended.err)
    check(len(said) == 1 and "one each 50 rounds" in said[0], f"{ended.err!r}")


def a_wait_is_a_warning_once(scene):
    """For who is not there, and for who is stopped; what follows of the same is none."""
    hands = Hands(scene, rounds=2000000)
    hands.agents[2].process.send_signal(signal.SIGSTOP)
    hands.agents[1].wait_for("waiting: edge 2->1", 30)
    said = [line for line in hands.agents[1].all_err.splitlines() if "waiting: edge" in line]
    check(len(said) == 1 and "is its host reachable?" in said[0], f"{said}")
    hands.end()


class Spoiler(Tap):
    """Of each connection a bit of data is flipped now and then."""

    FIRST, APART = 300000, 30000

    def passes_on(self, heard, data):
        if len(heard) > self.FIRST and len(heard) % self.APART < len(data):
            data = bytearray(data)
            data[-1] ^= 1
        return data


def who_is_lost_for_wrong_frames_is_lost_for_that(scene):
    """Wires flip bits between rank 0 and all others."""
    ports = free_ports(3)
    taps = [Spoiler(ports[0]) for _ in range(2)]
    changes = {"topology__nodes": 3, "rounds": 2000000, "transport__reconnect_s": 1}
    path = scene.experiment(membership={"on_loss": "continue", "grace_s": 4}, **changes)
    for tap in taps:
        tap.start()
    agents = []
    for rank, port in enumerate((ports[0], taps[0].port, taps[1].port)):
        lines = "".join(f"127.0.0.1:{each}\n" for each in (port, *ports[1:]))
        options = [
            "--roster",
            scene.write(f"roster{rank}", lines),
            "--rank",
            str(rank),
            "--run-id",
            "7",
        ]
        agents.append(scene.start("agent", path, *options, "--out", scene.path(f"out{rank}")))
    true = re.compile(r"warning: .*agent \d is lost: .*agent \d sent a malformed frame: ")
    wait_until(lambda: any(true.search(each.said) for each in agents), "the reason")
    said = "".join(each.said for each in agents)
    check("silent for longer than" not in said, f"nobody was silent: {said[-2000:]!r}")
    for running in agents:
        running.process.kill()
        running.process.wait()
    for tap in taps:
        tap.stop()


def wrong_restarts_are_refused(scene):
    for membership, words in (
        ({"on_loss": "stop", "restart": "on-failure"}, ("membership.restart", '"stop"', '"never"')),
        ({"on_loss": "stop", "restart": "always"}, ('"always"', '"continue"')),
        ({"on_loss": "continue", "restart": "sometimes"}, ("membership.restart", "on-failure")),
        ({"on_loss": "continue", "restart": True}, ("membership.restart", "on-failure")),
    ):
        scene.call("check", scene.experiment(membership=membership)).check_refused(*words)


def both_sides_name_the_setting_that_differs(scene):
    """With both values, as each has it."""
    for changes, key, own, other in (
        ({"optimizer__learning_rate": 0.375}, "optimizer.learning_rate", "0.01", "0.375"),
        ({"algorithm": {"name": "d-psgd", "local_steps": 4}}, "algorithm.local_steps", "1", "4"),
        ({"rounds": 7}, "rounds", "50", "7"),
        ({"data__batch": 16}, "data.batch", "8", "16"),
        ({"membership__on_loss": "continue"}, "membership.on_loss", '"stop"', '"continue"'),
    ):
        lines = "".join(f"127.0.0.1:{port}\n" for port in free_ports(2))
        roster, agents = scene.write("roster", lines), []
        for rank, more in enumerate(({}, changes)):
            path = scene.experiment(f"{rank}.json", **{"rounds": 50, "topology__nodes": 2, **more})
            agents.append(scene.start("agent", path, "--rank", str(rank), "--roster", roster))
        for rank, (here, there) in enumerate(((own, other), (other, own))):
            words = f"refused: {key}: {here} here, {there} at agent {1 - rank}"
            agents[rank].wait(60).check_refused(words, code=1)


TESTS = [
    both_sides_name_the_setting_that_differs,
    who_is_lost_for_wrong_frames_is_lost_for_that,
    wrong_restarts_are_refused,
    a_part_below_half_says_so,
    whoever_leaves_leaves_no_minority,
    who_exchanges_nothing_is_told,
    a_wait_is_a_warning_once,
    the_same_command_begins_joins_and_goes_on,
    who_is_left_goes_on_after_a_stop,
    who_is_left_goes_on_after_a_power_cut,
    a_run_without_one_goes_on_after_a_stop,
    a_further_rank_joins_again_after_a_stop,
    nobody_trains_before_all_have_come,
    agents_by_hand_lose_one_after_a_resume,
    a_run_loses_one_after_a_resume,
]
if __name__ == "__main__":
    run_tests(TESTS)
