#!/usr/bin/env python3
"""A run's page, `starling show`: each panel says what the run's folder says, live and finished, to
a browser, by keyboard, and as one file."""

import gzip
import json
import os
import re
import shutil
import signal
import statistics

from _browser import Browser, fetch, fetch_axe, needs_browser
from _ports import free_ports, free_range
from _scene import check, read_json, read_lines, run_tests, wait_until

CAPTION = """[...document.querySelectorAll('figcaption')].map((f) => f.innerText)"""
CELLS = """[...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) =>
    [...row.cells].map((cell) => cell.innerText))"""
NODES = """[...document.querySelectorAll('#graph .node')].map((n) => [n.className.baseVal,
    n.getAttribute('aria-label')])"""

DRAWN = """(async () => {
    const kept = board.curves, names = Object.keys(kept).filter((name) => name !== 'round');
    for (let i = 0; i < 300; i++) {
        board.curves = {round: [1, 9, 20]};
        for (const name of names)
            board.curves[name] = [i, i + 7, i + 1].map((k) => k % 9 ? 7 ** (k % 40 - 20) * k : 0);
        draw(["curves"], true);
        await 0;
    }
    board.curves = kept;
    draw(["curves"], true);
    return document.querySelectorAll('canvas').length })()"""


def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def serve(scene, folder, *words):
    shown = scene.start("show", folder, *words)
    shown.wait_for(" shows ")
    return shown, shown.out.split()[0]


def board_in(path):
    with open(path) as file:
        text = file.read()
    check(not re.search(r'(src|href)="?(http|//)', text), "the report names another host")
    return json.loads(re.search(r'id="board">(.*?)</script>', text, re.S).group(1))


def compare(board, folder, nodes):
    """The document with the folder's files."""
    consensus = read_lines(folder, "consensus.jsonl")
    metrics = [read_lines(folder, f"metrics-{rank}.jsonl") for rank in range(nodes)]
    curves = board["curves"]
    check(curves["round"] == [line["round"] for line in consensus], curves["round"])
    for at, line in enumerate(consensus):
        rows = [of_node[at] for of_node in metrics]
        for name, key in (("loss", "loss"), ("accuracy", "accuracy"), ("bytes", "bytes_sent")):
            mean = statistics.fmean(row[key] for row in rows)
            check(near(curves[name][at], mean), f"{name} {at}: {curves[name][at]}, not {mean}")
        check(near(curves["distance"][at], line["consensus_distance"]), f"distance {at}")
        if at > 0:
            before = consensus[at - 1]
            power = board["run"]["rho"] ** (line["round"] - before["round"])
            predicted = before["consensus_distance"] * power
            check(near(curves["predicted"][at], predicted), f"predicted {at}")
    for rank, lines in enumerate(metrics):
        row, seconds = board["strip"][rank], lines[-1]["seconds"]
        check(all(near(*both) for both in zip(row["until"], (line["time"] for line in lines))), row)
        check(row["round"] == [line["round"] for line in lines], row["round"])
        check(near(sum(row["compute"]), seconds["gradient"]), f"computing of {rank}")
        check(near(sum(row["wait"]), seconds["wait"]), f"waiting of {rank}")
        check(near(board["nodes"][rank]["loss"], lines[-1]["loss"]), f"loss of {rank}")


def a_finished_run_is_in_one_file_and_served(scene):
    """The same document, by file and by server; half-written lines are left out and said."""
    path, folder = scene.experiment(rounds=60, record__every=7), scene.path("run")
    scene.call("run", path, "--out", folder, timeout=120).check_well()
    scene.call("show", folder, "-o", scene.path("report.html")).check_well()
    board = board_in(scene.path("report.html"))
    compare(board, folder, 8)
    check(board["run"]["outcome"] == "done" and board["run"]["rounds"] == 60, board["run"])
    check({node["state"] for node in board["nodes"]} == {"done"}, board["nodes"])
    check(len(board["edges"]) == 16 and near(board["edges"][0]["weight"], 1 / 3), board["edges"])
    check(len(board["positions"]) == 8, board["positions"])
    check(board["events"][-1]["text"] == "all rounds are done", board["events"])
    with open(os.path.join(folder, "metrics-0.jsonl"), "a") as file:
        file.write('{"round": no}\n{"round":61,"node":0,"lo')
    shown, address = serve(scene, folder, "--listen", "127.0.0.1:0")
    headers, page = fetch(address)
    check(headers["Content-Security-Policy"] == "default-src 'self'", str(headers))
    check(b"in a browser of 2022 or later" in gzip.decompress(page), "who cannot run scripts")
    packed = [fetch(address + name)[1] for name in ("", "page.css", "page.js", "icon.svg")]
    unpacked = sum(len(gzip.decompress(file)) for file in packed)
    check(sum(map(len, packed)) <= 40e3 and unpacked <= 100e3, f"the page has {unpacked} bytes")
    now = json.loads(fetch(address + "board")[1])
    check(now["curves"] == board["curves"], "the server's curves differ")
    notes = now["run"]["notes"]
    check(len(notes) == 1 and "metrics-0.jsonl:10: is no JSON object" in notes[0], notes)
    text = fetch(address + "metrics")[1].decode()
    exposed = dict(re.findall(r"^(starling_\w+) (\S+)$", text, re.M))
    before, last = read_lines(folder, "consensus.jsonl")[-2:]
    distance = last["consensus_distance"]
    check(near(float(exposed["starling_consensus_distance"]), distance), exposed)
    left = (distance / before["consensus_distance"]) ** (1 / (last["round"] - before["round"]))
    check(near(float(exposed["starling_contraction_ratio"]), left), f"{exposed}, not {left}")
    port = address.split(":")[-1].strip("/")
    taken = scene.call("show", folder, "--listen", f"127.0.0.1:{port}")
    taken.check_refused("--listen", port, "in use")
    shown.interrupt().ends(0, 20)


def what_is_no_run_gets_one_sentence(scene):
    path, folder = scene.experiment(rounds=3), scene.path("run")
    scene.call("sim", path, "--out", folder).check_well()
    scene.call("show", scene.path("none")).check_refused("none", "no folder")
    scene.call("show", scene.folder).check_refused("holds no run", "config.json")
    scene.call("show", folder, "--listen", "0.0.0.0:0").check_refused("--listen", "loopback")
    scene.call("show", folder, "--listen", "here").check_refused("--listen", "here")
    scene.call("show", folder, "-o", "x.html", "--open").check_refused("-o", "one or the other")
    scene.call("run", path, "--open").check_refused("--open", "monitor.listen")
    half = shutil.copytree(folder, scene.path("half"))
    config = os.path.join(half, "config.json")
    os.truncate(config, os.path.getsize(config) // 2)
    scene.call("show", half).check_refused("half/config.json:")
    about = read_json(folder, "run.json")
    scene.write("half/run.json", json.dumps({**about, "version": "9.1.0"}))
    scene.call("show", half).check_refused("written by starling 9.1.0")


def a_lone_agent_shows_what_it_knows(scene):
    """Its own folder has its own curves and edges; its neighbour, which is asked, tells the other
    one of theirs."""
    ports, lookers = free_ports(3), free_range(2, 10) // 10
    scene.take_time()
    path = scene.experiment(topology={"nodes": 3, "family": "path"}, record__every=50)
    look = ("--set", f"monitor.listen=127.0.0.1:{lookers}{{rank}}")
    agents = [
        scene.agent(path, rank, scene.roster(ports), *(look if rank < 2 else ()))
        for rank in range(3)
    ]
    agents[0].wait_for("round 100/")
    board = json.loads(fetch(f"http://127.0.0.1:{lookers}0/board")[1])
    told = {(link["from"], link["to"]) for link in board["links"] if link["protection"]}
    check(told == {(1, 0), (0, 1), (2, 1)}, board["links"])
    check(board["run"]["rank"] == 0, board["run"])
    check(board["curves"]["round"][:2] == [50, 100], board["curves"])
    check(board["strip"][1]["until"] == [] and board["strip"][0]["until"] != [], board["strip"])
    states = {node["state"] for node in board["nodes"]}
    check(states <= {"computes", "exchanges", "is connected"}, states)
    for agent in agents:
        agent.process.send_signal(signal.SIGINT)
    for agent in agents:
        agent.wait(30)


def by_keyboard(browser):
    """Tab leads to node 0, an arrow to node 1, Enter chooses it; the table has its edges only."""
    browser.press("Tab", "ArrowRight", "Enter")
    label = browser.look("document.activeElement.getAttribute('aria-label')")
    check(label.startswith("node 1: "), label)
    edges = browser.look(CELLS, "#links-table")
    check(len(edges) == 4 and all("1" in row[0] for row in edges), edges)
    browser.press("Enter", "Tab", "ArrowLeft", "Home")
    caption, first = browser.look(CAPTION)[0], browser.look("board.curves.round[0]")
    check(re.search(rf"round {first}\D", caption), f"{caption!r}, not round {first}")


def fits(browser, width):
    browser.resize(width)
    wide = browser.look("document.documentElement.scrollWidth")
    check(wide <= width, f"a page of {wide} on a screen of {width}")


def a_browser_follows_a_run(scene):
    """Panels say what the folder says; a killed agent goes grey; the run's end is seen; nothing is
    asked of another host, and nothing complained of."""
    needs_browser()
    scene.take_time(1000)
    path, folder = scene.experiment(membership={"on_loss": "continue"}), scene.path("run")
    place = f"monitor.listen=127.0.0.1:{free_ports(1)[0]}"
    running = scene.start("run", path, "--out", folder, "--set", place)
    running.wait_for("its page: ")
    address = re.search(r"its page: (\S+)", running.out).group(1)
    with Browser() as browser:
        browser.driver.get(address)
        wait_until(lambda: browser.look("board.run && board.curves.round.length > 2"), "rounds")
        check(len(browser.look(NODES)) == 8, "nodes")
        wait_until(lambda: not any("gone" in kind for kind, _ in browser.look(NODES)), "all there")
        by_keyboard(browser)
        os.kill(scene.agents()[3], signal.SIGKILL)
        wait_until(lambda: "gone" in browser.look(NODES)[3][0], "node 3 grey")
        wait_until(lambda: "7 of 8 nodes" in browser.look("state.innerText"), "view in the head")
        lost = [row for row in browser.look(CELLS, "#events-table") if "is lost" in row[-1]]
        check(lost and "agent 3 is lost" in lost[0][-1], lost)
        running.interrupt().wait(60)
        wait_until(lambda: browser.look("state.innerText").startswith("stopped"), "end in the head")
        browser.requests()
        check(not (heard := browser.complaints()), heard)
        last = read_lines(folder, "consensus.jsonl")[-1]
        ahead = {**read_lines(folder, "metrics-0.jsonl")[-1], "round": last["round"] + 40}
        with open(os.path.join(folder, "metrics-0.jsonl"), "a") as file:
            file.write(json.dumps(ahead) + "\n")  # of a round that the others have not told of
        shown, address = serve(scene, folder)
        browser.driver.get(address)
        wait_until(lambda: browser.look("board.run !== undefined"), "the finished run")
        captions, exposed = browser.look(CAPTION), fetch(address + "metrics")[1].decode()
        told = re.search(r"\nstarling_consensus_distance (\S+)", exposed)
        check(told and near(float(told[1]), last["consensus_distance"]), exposed)
        check(f"round {last['round']}" in captions[2], captions)
        check(f"measured {float('%.3g' % last['consensus_distance']):g}" in captions[2], captions)
        check(browser.look(DRAWN) == 5, "curves of any size")
        for width in (360, 1200, 2400):
            fits(browser, width)
        asked = browser.requests()
        check(asked and all(one.startswith(address) for one in asked), asked)
        check(not (heard := browser.complaints()), heard)
        axe = fetch_axe(scene.path("npm"))
        for scheme in ("light", "dark") if axe else ():
            browser.prefer(scheme)
            check(not browser.violations(axe), f"axe-core, {scheme}: {browser.violations(axe)}")
        shown.interrupt().ends(0, 20)
    shutil.rmtree(scene.path("npm"), ignore_errors=True)
    if axe is None:
        print("skip axe-core on a run's page: npm cannot get it")


if __name__ == "__main__":
    run_tests()
