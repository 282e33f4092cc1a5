#!/usr/bin/env python3
"""Agents are lost under membership.on_loss "continue": the others go on, and end well.

usage: losses.py STARLING [TEST ...]
"""
import json
import os
import re
import shutil
import signal
import time

from _scene import SLOWER, check, run_tests

# Seconds of silence: more than a living agent is silent on a loaded machine.
PATIENT, IMPATIENT = 30, 8


def start(scene, nodes=8, **changes):
    """A run that has trained for some rounds, and has thousands before it."""
    changes = {"rounds": 4000, "membership__on_loss": "continue", **changes}
    changes = {"topology__nodes": nodes, "membership__grace_s": PATIENT, **changes}
    running = scene.start("run", scene.experiment(**changes), "--out", scene.path("run"))
    running.wait_for("round 40/")
    agents = scene.agents()
    check(sorted(agents) == list(range(nodes)), f"agents {sorted(agents)} are running")
    return running, agents


def events(scene, rank, kind):
    with open(scene.path(f"run/events-{rank}.jsonl")) as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    return [line for line in lines if line["event"] == kind]


def wait_for_views(scene, rank, count):
    until = time.monotonic() + SLOWER * 60
    while len(events(scene, rank, "view")) < count:
        check(time.monotonic() < until, f"agent {rank} comes to no view {count}")
        time.sleep(0.02)


def check_gone_on(scene, running, nodes, lost):
    """The run has ended well without these, which its summary and its last view name."""
    running.check_well()
    with open(scene.path("run/summary.json")) as file:
        told = json.load(file)["lost"]
    check(sorted(loss["node"] for loss in told) == lost, f"the summary names {told}")
    views = set()
    for rank in sorted(set(range(nodes)) - set(lost)):
        last = events(scene, rank, "view")[-1]
        views.add((last["round"], tuple(last["members"]), last["gap"]))
        losses = {event["peer"] for event in events(scene, rank, "lost")}
        check(losses == set(lost), f"agent {rank} has lost {losses}")
        check(events(scene, rank, "end")[0]["outcome"] == "done", f"agent {rank} has not ended")
    check(len(views) == 1, f"the survivors' last views differ: {views}")
    members = views.pop()[1]
    left = sorted(set(range(nodes)) - set(lost))
    check(list(members) == left, f"the last view has the members {members}")
    for rank in lost:
        check(
            re.search(rf"warning: agent {rank} is lost, the others go on", running.err),
            f"agent {rank}'s loss is not told: {running.err!r}",
        )
        check(f"lost                agent {rank} in round" in running.out, "no line of the table")
    check(os.path.exists(scene.path("run/model.npy")), "there is no averaged model")


def check_mean(running, nodes, lost):
    """The table's mean is of those who are left."""
    row = r"^(\d+|mean)( lost)? +(?:[\d.]+ % +|- +)?[-+\d.e]+ +([\d.]+) "
    rows = re.findall(row, running.out, re.M)
    sent = {label: float(megabytes) for label, _, megabytes in rows}
    named = [int(label) for label, is_lost, _ in rows if is_lost]
    check(named == lost, f"the table names {named}: {running.out}")
    left = [sent[str(rank)] for rank in range(nodes) if rank not in lost]
    check(abs(sent["mean"] - sum(left) / len(left)) < 0.011, f"another mean: {running.out}")


def check_repeated(scene):
    """The simulator has the same bits, with the same losses."""
    run = scene.path("run")
    ended = scene.call("sim", run, "--replay", "--out", scene.path("again"), timeout=120)
    ended.check_well()
    for word in (f"same bits as {run}: ", "views begun)"):
        check(word in ended.out, f"{word!r} is missing in {ended.out!r}")


def one_of_eight_is_killed(scene):
    running, agents = start(scene)
    os.kill(agents[3], signal.SIGKILL)
    running.wait(60)
    check_gone_on(scene, running, 8, [3])
    check_mean(running, 8, [3])
    check("killed by signal 9" in running.err, f"no cause is told: {running.err!r}")
    for rank in (2, 4):
        why = events(scene, rank, "lost")[0]["why"]
        check("its weight 0.3333 stays" in why, f"agent {rank} tells no fold: {why!r}")
    check_repeated(scene)


def neighbours_are_killed_at_once(scene):
    """Replicas, and messages that are compressed."""
    algorithm = {"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.1}}
    running, agents = start(scene, algorithm=algorithm)
    os.kill(agents[5], signal.SIGKILL)
    os.kill(agents[6], signal.SIGKILL)
    running.wait(60)
    check_gone_on(scene, running, 8, [5, 6])
    check_repeated(scene)


def two_stages_and_per_neighbour_replicas_are_repeated(scene):
    for name in ("gradient-tracking", "dcd-psgd"):
        running, agents = start(scene, nodes=4, rounds=1500, algorithm={"name": name})
        os.kill(agents[1], signal.SIGKILL)
        running.wait(60)
        check_gone_on(scene, running, 4, [1])
        check_repeated(scene)
        shutil.rmtree(scene.path("run"))
        shutil.rmtree(scene.path("again"))


def one_after_the_other_until_one_is_left(scene):
    running, agents = start(scene, nodes=4, rounds=8000)
    for views, rank in enumerate((0, 2, 3), 1):
        os.kill(agents[rank], signal.SIGKILL)
        wait_for_views(scene, 1, views)
    running.wait(60)
    check_gone_on(scene, running, 4, [0, 2, 3])


def who_is_stopped_is_folded_and_hears_of_it(scene):
    running, agents = start(scene, nodes=4, membership__grace_s=IMPATIENT)
    os.kill(agents[2], signal.SIGSTOP)
    wait_for_views(scene, 0, 1)
    try:
        os.kill(agents[2], signal.SIGCONT)
    except ProcessLookupError:
        pass  # on a slow machine `starling run` has waited for its report for long enough
    running.wait(60)
    check_gone_on(scene, running, 4, [2])
    told = "gone on without this agent" in running.err or "was stopped by a" in running.err
    check(told, f"it is not told: {running.err!r}")


def who_stays_stopped_does_not_keep_the_run(scene):
    running, agents = start(scene, nodes=4, membership__grace_s=IMPATIENT)
    os.kill(agents[2], signal.SIGSTOP)
    running.wait(60)
    check_gone_on(scene, running, 4, [2])
    check("was stopped by a signal" in running.err, f"it is not told: {running.err!r}")


def the_last_one_is_lost(scene):
    running, agents = start(scene, nodes=2, rounds=2000000)
    os.kill(agents[0], signal.SIGKILL)
    wait_for_views(scene, 1, 1)
    os.kill(agents[1], signal.SIGKILL)
    running.wait(60)
    check(running.code == 1, f"exit code {running.code}: {running.err!r}")


def what_cannot_be_folded_is_refused(scene):
    for name in ("sgp", "all-reduce", "deep-squeeze"):
        file = scene.experiment(algorithm={"name": name}, membership={"on_loss": "continue"})
        ended = scene.call("check", file)
        ended.check_refused("membership.on_loss", name, "stop", "d-psgd")


def check_says_what_a_loss_does(scene):
    for changes, words in (
        ({}, 'ends the run; membership.on_loss "continue" lets the others go on'),
        ({"membership": {"on_loss": "continue"}}, "the others go on without it, after 10 s"),
        ({"algorithm": {"name": "all-reduce"}}, "ends the run: all-reduce cannot fold a peer"),
    ):
        ended = scene.call("check", scene.experiment(**changes))
        line = f"  a lost peer         {words}"
        check(ended.code == 0 and line in ended.out, f"{changes}: {ended.out!r}")


run_tests(
    [
        one_of_eight_is_killed,
        neighbours_are_killed_at_once,
        two_stages_and_per_neighbour_replicas_are_repeated,
        one_after_the_other_until_one_is_left,
        who_is_stopped_is_folded_and_hears_of_it,
        who_stays_stopped_does_not_keep_the_run,
        the_last_one_is_lost,
        what_cannot_be_folded_is_refused,
        check_says_what_a_loss_does,
    ]
)
