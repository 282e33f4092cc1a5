#!/usr/bin/env python3
"""An agent's /metrics, /livez and /readyz, and the files for Prometheus and Grafana that use them:
read by promtool, where it is there."""
import json
import os
import re
import shutil
import subprocess

from _ports import free_ports
from _scene import check, needs, read_lines, run_tests, wait_until
from by_hand import PAIR
from strangers import start
from watchers import page

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "monitoring")
RULES, BOARD = (os.path.join(FOLDER, name) for name in ("alerts.yml", "dashboard.json"))
RUN = {
    **PAIR,
    "rounds": 10**7,
    "record__every": 500,
    "checkpoint": {"every": 500},
    "transport__connect_timeout_s": 600,
}


def promtool(*arguments, said=None):
    """What it finds."""
    needs(shutil.which("promtool"), "promtool is not installed (tools/setup --tests)")
    words = ["promtool", *arguments]
    got = subprocess.run(words, input=said, capture_output=True, text=True, check=False)
    return got.stdout + got.stderr if got.returncode != 0 else ""


def numbers(text):
    return {
        name: float(value)
        for name, value in re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE)
    }


def used():
    """Names in the files."""
    with open(RULES) as rules, open(BOARD) as board:
        text = rules.read() + json.dumps([each["targets"] for each in json.load(board)["panels"]])
    return set(re.findall(r"\b(?:starling|process)_[a-z_]+\b", text))


def an_agent_says_how_it_is(scene):
    look = free_ports(1)[0]
    experiment, roster = scene.experiment(**RUN), scene.roster(free_ports(2))

    def see(path):
        status, said = page(("127.0.0.1", look), "GET", path)
        return status, said.decode()

    def read():
        return numbers(see("/metrics")[1])

    listen = f"monitor.listen=127.0.0.1:{look}"
    agents = [start(scene, experiment, 0, roster, "out0", "--set", listen)]
    agents[0].wait_for("come up: 1 (")
    check(see("/livez") == (200, "ok\n"), see("/livez"))
    status, said = see("/readyz")
    check(status == 503 and "[+]loop ok\n[-]training failed: it connects\n" in said, said)
    check("[-]neighbours failed: 0 of 1 connected; not 1\n" in said, said)
    agents.append(start(scene, experiment, 1, roster, "out1"))
    saved = "starling_checkpoint_last_success_timestamp_seconds"
    wait_until(lambda: saved in read(), "a checkpoint is told")
    check(see("/readyz") == (200, "ok\n"), see("/readyz"))
    rounds, first = "starling_rounds_total", read()
    wait_until(lambda: read()[rounds] > first[rounds], "rounds go on")
    ratio = "starling_contraction_ratio"
    wait_until(lambda: ratio in read(), "the distance is measured twice")
    text = see("/metrics")[1]
    last = numbers(text)
    check(last['starling_edge_up{peer="1"}'] == 1 and last["starling_members"] == 2, text)
    both = [last[f'starling_edge_{way}_bytes_total{{peer="1"}}'] for way in ("sent", "received")]
    check(0.9 < both[0] / both[1] < 1.1, text)
    age = last["starling_last_round_timestamp_seconds"] - last["process_start_time_seconds"]
    check(0 < age < 600, text)
    lines = read_lines(scene.path("out0"), "metrics-0.jsonl")
    apart = {line["round"]: line["neighbour_distance"] for line in lines}
    at = last[rounds] // 500 * 500
    left = (apart[at] / apart[at - 500]) ** (1 / 500)
    check(abs(last[ratio] - left) < 1e-9, f"{left} is left of {apart}, in {text}")
    missing = used() - {name.partition("{")[0] for name in last}
    check(not missing, f"{missing} in {text}")
    for agent in agents:
        agent.process.terminate()
        agent.wait(60)
    lint = promtool("check", "metrics", said=text)
    check(not lint, lint)


def rules_are_read(scene):
    found = promtool("check", "rules", RULES)
    check(not found, found)


if __name__ == "__main__":
    run_tests()
