#!/usr/bin/env python3
"""Real agents that are asked to end or to save, and then go on: they end with the bits of the
simulator, which was never stopped. replay.py kills them; test_resume has all that is saved."""
import glob
import os
import re
import shutil
import signal

from _ports import free_ports
from _scene import check, read_json, run_tests, wait_until

EVERY = 40
RUN = {
    "rounds": 800,
    "topology": {"nodes": 4, "family": "ring"},
    "algorithm": {"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.05}},
    "optimizer__momentum": 0.9,
    "model": "softmax",
    "record": {"every": 200, "parameters_at": [0, 800]},
    "checkpoint": {"every": EVERY, "keep": 3},
    "transport__connect_timeout_s": 60,
}


def rounds_saved(folder, rank=0):
    names = glob.glob(os.path.join(folder, "checkpoints", f"round-*-rank-{rank}.safetensors"))
    return sorted(int(re.search(r"round-(\d+)-", name).group(1)) for name in names)


def wait_beyond(scene, running, folder, rounds, rank=0):
    """Until rank has saved a round after these."""

    def has():
        check(running.process.poll() is None, f"ended with {running.process.poll()}: {running.err}")
        return rounds_saved(folder, rank)[-1:] > rounds[-1:]

    wait_until(has, f"a checkpoint after {rounds}")


def end_saved(agents, rank, seconds=30):
    """SIGUSR2 to one of them: all end after a checkpoint."""
    os.kill(agents[rank].process.pid, signal.SIGUSR2)
    for running in agents:
        running.wait(seconds)
        check(running.code == 75, f"exit code {running.code}: {running.err!r}")


def ask(scene, command):
    """A long training, to save and then to end. Meanwhile nobody else goes on from its
    checkpoints."""
    scene.take_time()
    kept = {"every": EVERY, "keep": 200}  # none is gone before it is seen
    changes = {**RUN, "rounds": 2000000, "checkpoint": kept}
    path, out = scene.experiment(**changes), scene.path("out")
    running = scene.start(command, path, "--out", out)
    wait_beyond(scene, running, out, [])
    scene.call(command, "--resume", out).check_refused("another process writes", "checkpoints")
    os.kill(running.process.pid, signal.SIGUSR1)
    wait_until(lambda: any(r % EVERY for r in rounds_saved(out)), "a checkpoint between two")
    os.kill(running.process.pid, signal.SIGTERM)
    running.wait(30)
    return running, out


def run_is_asked_to_save_and_to_end(scene):
    """SIGUSR1 to run, SIGTERM to run, SIGUSR2 to one agent: all save the same round."""
    running, out = ask(scene, "run")
    check(running.code == 75 and "--resume" in running.err, f"{running.code}: {running.err!r}")
    ends = {rounds_saved(out, rank)[-1] for rank in range(4)}
    check(len(ends) == 1, f"agents ended in rounds {ends}")
    running = scene.start("run", "--resume", out)
    wait_beyond(scene, running, out, rounds_saved(out))
    os.kill(scene.agents()[2], signal.SIGUSR2)
    running.ends(75, 30)
    last = rounds_saved(out)[-1]
    scene.call("run", "--resume", out, "--set", f"rounds={last + 3}", timeout=60).check_well()
    whole = scene.experiment(**{**RUN, "rounds": last + 3})
    scene.check_models(["out"] * 4, experiment=whole)


def a_simulation_is_asked_to_save(scene):
    """SIGUSR1: a checkpoint between two; SIGTERM ends it, and it goes on from the newest."""
    running, out = ask(scene, "sim")
    check(running.code == 130, f"{running.code}: {running.err!r}")
    last = rounds_saved(out)[-1]
    scene.call("sim", "--resume", out, "--set", f"rounds={last + 3}", timeout=60).check_well()


def start_by_hand(scene, path, resume=(), words_of=lambda rank: ()):
    scene.take_time()
    roster, agents = scene.roster(free_ports(4)), []
    for rank in range(4):
        own = scene.path(f"out{rank}")
        words = ["--resume", own] if rank in resume else [path, "--out", own]
        words += ["--rank", str(rank), "--roster", roster, "--run-id", "7"]
        words += words_of(rank)
        agents.append(scene.start("agent", *words))
    return agents


def check_what_one_host_has(scene, rank):
    """Its checkpoints are good, though the other host's are not here; its cost is written."""
    listed = scene.call("checkpoint", f"out{rank}")
    listed.check_well()
    lines = listed.out.splitlines()
    check(lines and all("good for 1 of 2 nodes" in line for line in lines), listed.out)
    info = read_json(scene.path(f"out{rank}/run-{rank}.json"))
    costs = ("processor_s", "peak_memory_bytes", "bytes_sent", "bytes_received")
    check(all(info[name] > 0 for name in costs), info)


def what_may_differ_where_a_run_goes_on(scene):
    """A key that is named beside the experiment is found from the run's folder; time limits,
    places and keys may be others, and what neighbours compare may not."""
    scene.take_time()
    scene.call("keys", "make", "-o", scene.path("run.key")).check_well()
    shutil.copy(scene.path("run.key"), scene.path("key-0"))
    shutil.copy(scene.path("run.key"), scene.path("key-1"))
    pair = {**RUN, "topology": {"nodes": 2, "family": "ring"}, "security": {"key": "run.key"}}
    pair.update(rounds=4000, record={"every": 20})
    scene.experiment("pair.json", **pair)
    roster = scene.roster(free_ports(2))

    def start(rank, *words):
        return scene.start("agent", *words, "--rank", str(rank), "--roster", roster)

    agents = [start(rank, "pair.json", "--out", f"out{rank}") for rank in range(2)]
    wait_until(lambda: rounds_saved(scene.path("out1"), 1)[-1:] >= [EVERY], "a checkpoint")
    os.kill(agents[1].process.pid, signal.SIGUSR1)
    agents[0].wait_for("saved on request: the checkpoint of round ")
    end_saved(agents, 1)
    check_what_one_host_has(scene, 0)
    key = read_json(scene.path("out0/config.json"))["security"]["key"]
    check(key == scene.path("run.key"), f"the key's path is {key}")
    wrong = start(0, "--resume", "out0", "--set", "optimizer.momentum=0").wait(30)
    wrong.check_refused("optimizer.momentum: 0 here, 0.9 in out0/config.json")
    wrong = start(0, "pair.json", "--out", "out0", "--set", "algorithm=d-psgd").wait(30)
    wrong.check_refused('algorithm.name: "d-psgd" here, "choco-sgd" in out0/config.json')
    others = (f"monitor.listen=127.0.0.1:{free_ports(1)[0]}", "transport.connect_timeout_s=40")
    others += (f"security.key={scene.path('key-{rank}')}", "record.every=10", "name=other")
    sets = [word for value in others for word in ("--set", value)]
    last = rounds_saved(scene.path("out0"))[-1]
    sets += ["--set", f"rounds={last + 30}"]
    agents = [
        start(rank, "--resume", f"out{rank}", *(sets if rank else sets[-2:])) for rank in range(2)
    ]
    for running in agents:
        running.wait(120).check_well()


def what_not_all_do_is_refused(scene):
    """One of four goes on with another rate; then two go on and two begin anew: all say so."""
    path = scene.experiment(**RUN)
    agents = start_by_hand(scene, path)
    wait_until(lambda: rounds_saved(scene.path("out1"), 1)[-1:] >= [EVERY], "a checkpoint")
    end_saved(agents, 1)
    rate = ("--set", "optimizer.learning_rate=0.005")
    agents = start_by_hand(scene, path, words_of=lambda rank: rate if rank == 1 else ())
    for rank, running in enumerate(agents):
        running.ends(1, 60)
        of_one = "0.005 here, 0.01 at agent " if rank == 1 else "0.01 here, 0.005 at agent 1"
        said = f"refused: optimizer.learning_rate: {of_one}"
        check(said in running.err or rank == 3, running.err)  # agent 3 is no neighbour of it
        kept = read_json(scene.path(f"out{rank}/config.json"))["optimizer"]["learning_rate"]
        check(kept == 0.01, "the refused rate is written")
    for rank in (2, 3):
        shutil.rmtree(scene.path(f"out{rank}"))
    for rank, running in enumerate(start_by_hand(scene, path, resume=(0, 1))):
        running.ends(1, 60)
        check("all go on from the same round, or none does" in running.err, running.err)
        said = set(re.findall(r"agent (\d) (goes on from a checkpoint|begins anew)", running.err))
        true = {(str(k), "goes on from a checkpoint" if k < 2 else "begins anew") for k in range(4)}
        check(said and said <= true, f"agent {rank} says {said}")


if __name__ == "__main__":
    run_tests()
