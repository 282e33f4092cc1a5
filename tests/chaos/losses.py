#!/usr/bin/env python3
"""Agents are lost, leave, or return, under membership.on_loss "continue": the others go on, and end
well."""
import os
import re
import shutil
import signal

from _ports import free_ports
from _scene import check, read_json, run_tests, wait_until, read_lines

# Seconds of silence: more than a living agent is silent on a loaded machine.
PATIENT, IMPATIENT = 30, 8
PAUSE_US = 1500  # of each product: a round takes 8 ms


def start(scene, nodes, **changes):
    """A run that has trained for some rounds, and has hundreds before it."""
    scene.take_time(PAUSE_US)
    changes = {"rounds": 400, "membership__on_loss": "continue", **changes}
    if "topology" not in changes:
        changes["topology__nodes"] = nodes
    changes = {"membership__grace_s": PATIENT, **changes}
    running = scene.start("run", scene.experiment(**changes), "--out", scene.path("run"))
    running.wait_for("round 40/")
    agents = scene.agents()
    check(sorted(agents) == list(range(nodes)), f"agents {sorted(agents)} are running")
    return running, agents


def events(scene, rank, kind, folder="run"):
    lines = read_lines(scene.path(folder), f"events-{rank}.jsonl")
    return [line for line in lines if line["event"] == kind]


def wait_for_views(scene, rank, count, folder="run"):
    views = f"agent {rank} comes to view {count}"
    wait_until(lambda: len(events(scene, rank, "view", folder)) >= count, views)


def check_gone_on(scene, running, nodes, lost):
    """The run has ended without these, which its summary and its last view name."""
    check(running.code == 3, f"exit code {running.code}, not 3: {running.err!r}")
    summary = read_json(scene.path("run/summary.json"))
    told = summary["lost"]
    check(summary["minority"] == (2 * len(lost) > nodes), f"{summary['minority']}")
    named = [int(rank) for rank in re.findall(r"agent (\d+) \(lost in round", summary["missing"])]
    check(named == lost, f"missing: {summary['missing']!r}")
    check(summary["members"] == sorted(set(range(nodes)) - set(lost)), f"{summary['members']}")
    check(sorted(loss["node"] for loss in told) == lost, f"the summary names {told}")
    about = read_json(scene.path("run/run.json"))
    check((about["outcome"], about["why"]) == ("done", summary["missing"]), f"{about}")
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
    left = [name for name in os.listdir("/dev/shm") if "starling" in name]
    check(not left, f"memory of those who were killed is left: {left}")


def check_mean(running, nodes, lost):
    """The table's mean is of those who are left."""
    row = r"^(\d+|mean)( lost)? +(?:[\d.]+ % +|- +)?[-+\d.e]+ +([\d.]+) "
    rows = re.findall(row, running.out, re.M)
    sent = {label: float(megabytes) for label, _, megabytes in rows}
    named = [int(label) for label, is_lost, _ in rows if is_lost]
    check(named == lost, f"the table names {named}: {running.out}")
    left = [sent[str(rank)] for rank in range(nodes) if rank not in lost]
    check(abs(sent["mean"] - sum(left) / len(left)) < 0.011, f"another mean: {running.out}")


def check_repeated(scene, run):
    """The simulator has the same bits, with the same losses."""
    ended = scene.call("sim", run, "--replay", "--out", scene.path("again"), timeout=120)
    ended.check_well()
    for word in (f"same bits as {run}: ", "views begun)"):
        check(word in ended.out, f"{word!r} is missing in {ended.out!r}")


def others_go_on_as_simulated(scene):
    """When one is killed, and average at the end: replicas of all, and push-sum weights of peers
    that only send or only get something. loss_world has the others, without the logs."""
    choco = {"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.1}}
    for algorithm, more in (
        (choco, {"optimizer": {"learning_rate": 0.01, "momentum": 0.9}}),
        ("sgp", {"topology": {"nodes": 4, "family": "one-peer-exponential"}}),
    ):
        changes = {"algorithm": algorithm, "rounds": 300, "transport__chunk_bytes": 4096, **more}
        running, agents = start(scene, nodes=4, final_average=True, **changes)
        os.kill(agents[1], signal.SIGKILL)
        running.wait(60)
        check_gone_on(scene, running, 4, [1])
        check_mean(running, 4, [1])
        check("killed by signal 9" in running.err, f"no cause is told: {running.err!r}")
        summary = read_json(scene.path("run/summary.json"))
        check("final_average" in summary and summary["consensus_distance"] == 0, f"{summary}")
        check_repeated(scene, scene.path("run"))
        for folder in ("run", "again"):
            shutil.rmtree(scene.path(folder))


def stop_until_lost(scene, agents, rank):
    """Stops it until the others, agent 0 among them, have gone on without it."""
    before = len(events(scene, 0, "view"))
    os.kill(agents[rank], signal.SIGSTOP)
    wait_for_views(scene, 0, before + 1)
    os.kill(agents[rank], signal.SIGCONT)
    wait_for_views(scene, 0, before + 2)


def on_a_device_one_is_killed_and_one_returns(scene):
    """The emulated one; with a replica of each neighbour, which begins anew."""
    scene.emulate_device()
    compressor = {"name": "float16"}
    algorithm = {"name": "choco-sgd", "replicas": "per-neighbour", "compressor": compressor}
    changes = {"device": "cuda:0", "model": "softmax", "rounds": 900, "algorithm": algorithm}
    running, agents = start(scene, nodes=4, membership__grace_s=IMPATIENT, **changes)
    os.kill(agents[2], signal.SIGKILL)
    wait_for_views(scene, 0, 1)
    stop_until_lost(scene, agents, 1)
    running.ends(3, 60)
    told = told_losses(scene.path("run"))
    check([loss["node"] for loss in told] == [2, 1], f"{told}")
    for rank in (0, 1, 3):
        view = events(scene, rank, "view")[-1]
        check(view["members"] == [0, 1, 3], f"agent {rank} ends with {view}")
    check(len(events(scene, 1, "join")) == 1, "agent 1 has not joined again")
    check_repeated(scene, scene.path("run"))


class Hands:
    """Four agents by hand, each with a folder of its own."""

    def __init__(self, scene, **changes):
        self.scene, self.started = scene, 0
        scene.take_time(PAUSE_US)
        changes = {"membership__on_loss": "continue", **changes}
        self.changes = {"topology__nodes": 4, "membership__grace_s": PATIENT, **changes}
        self.roster = scene.roster(free_ports(4))
        self.agents = [self.start(rank) for rank in range(4)]
        self.agents[0].wait_for("round 40/")

    def start(self, rank, *options, **changes):
        self.started += 1
        name = f"{self.started}.json"
        file = self.scene.experiment(name, **{**self.changes, **changes})
        folder = self.scene.path(f"own{self.started}")
        running = self.scene.agent(file, rank, self.roster, *options, out=folder)
        running.folder = folder
        return running

    def kill(self, rank):
        self.agents[rank].kill()

    def end(self):
        for running in self.agents:
            running.kill()


def told_losses(folder):
    return read_json(folder, "summary.json")["lost"]


def check_left(scene, running, rank):
    """It has ended its round, and nobody waits for it."""
    end = events(scene, rank, "end")[-1]
    check(end["outcome"] == "left", f"agent {rank} has ended so: {end}")
    name = f"run/checkpoints/round-{end['round']}-rank-{rank}.safetensors"
    check(os.path.exists(scene.path(name)), f"{name} is missing")
    check(f"agent {rank} has left, the others go on" in running.err, running.err)
    check(f"left                agent {rank} after round" in running.out, running.out)
    without = [v["round"] for v in events(scene, 1, "view") if rank not in v["members"]]
    check(end["round"] + 1 in without, f"it ends with {end}; views without it: {without}")
    told = [event["why"] for event in events(scene, 1, "lost") if event["peer"] == rank]
    check("has left" in told[-1], f"agent 1 has lost it: {told}")


def who_dies_is_started_again_and_who_leaves_is_not(scene):
    """One leaves; others die, the leader too, which leaves once it is back. The members share all
    samples anew each time. Then it is repeated."""
    changes = {"rounds": 2500, "membership__restart": "on-failure", "data__on_change": "share"}
    changes.update(algorithm="gradient-tracking", checkpoint={"every": 5000, "keep": 50})
    running, agents = start(scene, nodes=4, **changes)
    os.kill(agents[2], signal.SIGTERM)
    wait_for_views(scene, 1, 1)
    for rank in (3, 0):
        os.kill(scene.agents()[rank], signal.SIGKILL)
        running.wait_for(f"agent {rank} has returned in round")
    os.kill(scene.agents()[0], signal.SIGTERM)
    running.wait(60).check_well()
    told = told_losses(scene.path("run"))
    order = [(loss["node"], loss["left"]) for loss in told]
    check(order == [(2, True), (3, False), (0, False), (0, True)], f"{told}")
    for loss in told[1:3]:
        rank, views = loss["node"], [v["round"] for v in events(scene, loss["node"], "view")]
        check(loss["restarts"] == 1 and loss["restarted_s"] > 0, f"{loss}")
        check(loss["returned"] in views, f"{loss}, {views}")
        check(f"agent {rank} is started again, to join the others" in running.err, running.err)
        check(f"started again       agent {rank} after " in running.out, running.out)
        check([s["round"] for s in events(scene, rank, "start")] == [1, 0], f"agent {rank}")
    check(told[3]["restarts"] == 0 and told[3]["restarted_s"] is None, f"{told[3]}")
    check("missing" not in read_json(scene.path("run/summary.json")), "who has left is missed")
    for rank in (2, 0):
        check_left(scene, running, rank)
    check_repeated(scene, scene.path("run"))


def who_cannot_join_is_told_why(scene):
    hands = Hands(scene, membership__joiners=1)
    impatient = {"transport__connect_timeout_s": 5}
    short = hands.start(4, "--join").wait(30)
    short.check_refused("the roster names ranks 0 to 3; add a line HOST:PORT")
    taken = hands.start(3, "--join").wait(30)
    taken.check_refused("already in use")
    check(not os.path.exists(taken.folder), "a run folder was left behind")
    for rank, port in zip((3, 0), free_ports(2)):
        options = ("--join", "--listen", f"127.0.0.1:{port}")
        alive = hands.start(rank, *options, **impatient).wait(30)
        alive.check_refused("has the process of its rank ended?", code=1)
    hands.kill(3)
    wait_for_views(scene, 0, 1, hands.agents[0].folder)
    differs = hands.start(3, "--join", model__hidden=[17]).wait(30)
    differs.check_refused("refused", "model.hidden: [17] here, [16] at agent", code=1)
    more = hands.start(3, "--join", membership__joiners=2).wait(30)
    more.check_refused("refused", "membership.joiners: 2 here, 1 at agent", code=1)
    other = hands.start(3, "--join", "--run-id", "7", **impatient).wait(30)
    other.check_refused("the run id of agents", "--run-id", code=1)
    alone = [running.process.poll() for running in hands.agents[:3]]
    check(alone == [None] * 3, f"a survivor has ended: {alone}")
    hands.end()
    hands.roster = scene.roster(free_ports(5), "roster5")
    other = hands.start(4, "--join", membership__joiners=0).wait(30)
    other.check_refused("the roster has 5 ranks, the topology 4 nodes")
    hands.roster = scene.path("roster")
    nobody = hands.start(3, "--join", **impatient).wait(30)
    nobody.check_refused("do they train", "connection refused", code=1)
    stops = hands.start(3, "--join", membership={"on_loss": "stop"}).wait(30)
    stops.check_refused("membership.on_loss", "stop", "continue")
    file = scene.experiment(**hands.changes)
    scene.call("agent", file, "--join", "--rank", "3").check_refused("--join", "--roster")
    ended = scene.call("agent", "--resume", scene.path("own1"), "--join", "--rank", "3")
    ended.check_refused("--join", "--resume")


if __name__ == "__main__":
    run_tests()
