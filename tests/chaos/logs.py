#!/usr/bin/env python3
"""What run and agent say while they train has time, level and rank; with --log json all that they
say is an object a line, with events of one table, which docs/outputs.md has too."""
import datetime
import json
import os
import re
import signal

from _ports import free_ports
from _scene import check, read_lines, run_tests

FIELDS = ["time", "level", "event", "run", "rank", "round", "peer", "message"]
LEVELS = {"info", "notice", "warning", "error"}
LINE = re.compile(r"\d\d:\d\d:\d\d (info|notice|warning|error)( rank \d+)?: .+")
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "outputs.md")
MEMBERS = {"on_loss": "continue", "grace_s": 1, "restart": "on-failure"}
GOING = {"membership": MEMBERS, "rounds": 1500, "topology__nodes": 3, "checkpoint__every": 300}


def events_in_help(scene, command="agent"):
    text = scene.call(command, "--help").out.split("events of --log json:\n")[1]
    return re.findall(r"^  (\w+)  ", text, re.M)


def objects(said, known):
    """The lines, each of which is one; its time is now, in UTC."""
    found = [json.loads(line) for line in said.splitlines()]
    now = datetime.datetime.now(datetime.timezone.utc)
    for one in found:
        check(list(one) == FIELDS and one["level"] in LEVELS and one["event"] in known, one)
        check(re.fullmatch(r"[\d-]{10}T[\d:]{8}\.\d{3}Z", one["time"]), one)
        when = datetime.datetime.fromisoformat(one["time"].replace("Z", "+00:00"))
        check(0 <= (now - when).total_seconds() < 600, (one, now))
        check(isinstance(one["message"], str) and one["message"], one)
    return found


def start_and_lose(scene, out, *words):
    """Of three agents one is killed, and its place is taken."""
    scene.take_time()
    running = scene.start("run", scene.experiment(**GOING), "--out", scene.path(out), *words)
    running.wait_for("300/1500")
    os.kill(scene.agents()[2], signal.SIGKILL)
    return running.ends(0, 90)


def a_run_says_objects(scene):
    known = events_in_help(scene)
    said = objects(start_and_lose(scene, "run", "--log", "json").said, known)
    check(all(one["run"] == scene.path("run") for one in said), said[0])
    kinds = {}
    for one in said:
        kinds.setdefault((one["event"], one["rank"]), []).append(one)
    check(kinds["finished", None][0]["round"] == 1500, kinds["finished", None])
    check(kinds["return", None][0]["peer"] == 2 and kinds["restart", None][0]["peer"] == 2, kinds)
    (lost,) = kinds["lost", None]
    check((lost["peer"], lost["level"]) == (2, "warning"), lost)
    rounds = [one["round"] for one in kinds["round", None]]
    recorded = [line["round"] for line in read_lines(scene.path("run"), "consensus.jsonl")]
    check(rounds == recorded, (rounds, recorded))
    for rank in range(3):  # an agent's lines are those of its file
        for kind in ("start", "down", "view", "checkpoint", "end"):
            lines = read_lines(scene.path("run"), f"events-{rank}.jsonl")
            expected = [(e["round"], e.get("peer")) for e in lines if e["event"] == kind]
            found = [(e["round"] or 0, e["peer"]) for e in kinds.get((kind, rank), [])]
            check(found == expected, (rank, kind, found, expected))


def people_read_time_level_and_rank(scene):
    running = start_and_lose(scene, "run")
    timed = [line for line in running.said.splitlines() if re.match(r"\d\d:", line)]
    check(all(LINE.fullmatch(line) for line in timed), timed)
    words = "\n".join(timed)
    for said in (r" warning: agent 2 is lost, ", r" rank [01]: .*2 of 3 nodes go on", " notice: "):
        check(re.search(said, words), f"{said!r} is missing in {words}")


def an_agent_by_hand_says_objects(scene):
    known, path = events_in_help(scene), scene.experiment(topology__nodes=2, rounds=20)
    roster = scene.roster(free_ports(2))
    agents = [scene.agent(path, rank, roster, "--log", "json") for rank in range(2)]
    for rank, agent in enumerate(agents):
        said = objects(agent.ends(0, 60).said, known)
        check({one["rank"] for one in said} == {rank}, said)
        events = [one["event"] for one in said]
        check(events[0] == "begin" and events[-1] == "finished", events)
        check({"start", "edge", "round", "end"} <= set(events), events)
    wrong = scene.call("agent", path, "--log", "json", "--roster", scene.path("none"))
    (error,) = objects(wrong.said, known)
    check((error["event"], error["level"], error["rank"]) == ("error", "error", None), error)
    check(wrong.code == 2 and not wrong.out, wrong.out)
    scene.call("run", path, "--log", "xml").check_refused("--log xml", "text or json")


def the_docs_have_the_table(scene):
    with open(DOCS, encoding="utf-8") as file:
        text = file.read()
    kinds = text.split("## events-RANK.jsonl")[1].split("\n## ")[0]
    own = text.split("## Log lines")[1].split("\n## ")[0]
    heads = re.findall(r"^- (`\w+`(?:, `\w+`)*)", kinds + own, re.M)
    named = [name for head in heads for name in re.findall(r"\w+", head)]
    check(sorted(named) == sorted(events_in_help(scene)), named)


if __name__ == "__main__":
    run_tests()
