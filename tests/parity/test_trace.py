#!/usr/bin/env python3
"""What agents did when (record.trace), in rounds and at their own times: each gradient and wait is
there, and each message leaves before it comes."""
import json
import os
import shutil

from _here import check, run_tests

ROUNDS = 20
SLACK = 1e3  # microseconds, between two processes that read one clock
ALGORITHMS = ("d-psgd", "all-reduce", "ad-psgd", {"name": "d-psgd", "staleness": 2})


def experiment_of(algorithm):
    return {
        "rounds": ROUNDS,
        "topology": {"family": "ring", "nodes": 4},
        "model": "softmax",
        "data": {"name": "digits", "batch": 8},
        "algorithm": algorithm,
        "record": {"trace": True},
    }


def spans_of(folder, rank):
    """{name: spans} of an agent, by begin."""
    with open(os.path.join(folder, f"trace-{rank}.json"), encoding="utf-8") as file:
        events = [event for event in json.load(file) if event["ph"] == "X"]
    check(all(event["pid"] == rank and event["dur"] >= 0 for event in events), rank)
    found = {}
    for event in sorted(events, key=lambda event: event["ts"]):
        found.setdefault(event["name"], []).append(event)
    return found


def end_of(span):
    return span["ts"] + span["dur"]


def check_rows(spans):
    """A gradient and a wait a round, in turns; the work of an agent's loop does not overlap."""
    for name in ("gradient", "wait"):
        rounds = [span["args"]["round"] for span in spans[name]]
        check(rounds == list(range(1, ROUNDS + 1)), (name, rounds))
    row = sorted(spans["gradient"] + spans["wait"], key=lambda span: span["ts"])
    work = sorted(spans["combine"] + spans["encode"], key=lambda span: span["ts"])
    for each in (row, work):
        for before, after in zip(each, each[1:]):
            check(end_of(before) <= after["ts"] + 1, (before, after))


def check_messages(agents):
    """What has come was sent before. How many have: the last of each neighbour is not told."""
    sent = {}
    for rank, spans in enumerate(agents):
        for span in spans["send"]:
            sent.setdefault((rank, span["args"]["to"]), []).append(span)
    come = 0
    for rank, spans in enumerate(agents):
        for span in spans.get("receive", []):
            before = sent[span["args"]["from"], rank]
            check(any(other["ts"] <= end_of(span) + SLACK for other in before), span)
            come += 1
    check(come > ROUNDS, come)


def test_agents_say_what_they_did(scene):
    for algorithm in ALGORITHMS:
        folder = scene.path("run")
        shutil.rmtree(folder, ignore_errors=True)
        path = scene.write("experiment.json", json.dumps(experiment_of(algorithm)))
        scene.call("run", path, "--out", folder).check_well()
        agents = [spans_of(folder, rank) for rank in range(4)]
        for spans in agents:
            check_rows(spans)
        check_messages(agents)


def test_without_it_nothing_is_written(scene):
    experiment = {**experiment_of("d-psgd"), "record": {}}
    path = scene.write("experiment.json", json.dumps(experiment))
    check(scene.call("run", path, "--out", scene.path("run")).code == 0, "it failed")
    check(not any("trace" in name for name in os.listdir(scene.path("run"))), "a trace")


def test_a_run_goes_on_without_a_trace_that_cannot_be_written(scene):
    os.makedirs(scene.path("run/trace-0.json"))
    path = scene.write("experiment.json", json.dumps(experiment_of("d-psgd")))
    ended = scene.call("run", path, "--out", scene.path("run"))
    check(ended.code == 0 and "agent writes no trace" in ended.err, ended.err)
    check(os.path.isfile(scene.path("run/trace-1.json")), "no trace of agent 1")


if __name__ == "__main__":
    run_tests()
