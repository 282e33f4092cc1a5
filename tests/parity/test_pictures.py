#!/usr/bin/env python3
"""What `starling topology draw` writes: well-formed pictures that show every node and edge, with no
text over another text or over the border."""
import functools
import glob
import math
import os
import re
import sys
import tempfile
import xml.etree.ElementTree as tree

from _here import ROOT
from _simulate import QUICK, call, main

SVG = "{http://www.w3.org/2000/svg}"
MADE = [  # beside those of topologies/
    "grid --nodes 60 --sides 3,4,5",
    "k-ary-tree --nodes 121 --arity 3",
    "complete-bipartite --nodes 9 --part 4",
    "wheel --nodes 12",
    "random-regular --nodes 1000 --degree 4",
    "star --nodes 16 --weights uniform",
    "complete --nodes 128",
    "ring --nodes 300",
    "path --nodes 2",
    "ring --nodes 1",
    "one-peer-hypercube --nodes 1024",
    "base-k --nodes 20 --peers 2",
    "grid --nodes 2500",
    "base-k --nodes 25 --peers 1",
    "matcha --nodes 24 --base ring --budget 0.3",
    "path --nodes 200",
]


def draw(starling, file, folder):
    out = os.path.join(folder, "picture.svg")
    ended = call(starling, "topology", "draw", file, "-o", out)
    if ended.returncode != 0 or ended.stderr or ended.stdout:
        raise AssertionError(f"ended with {ended.returncode}: {ended.stderr.strip()}")
    with open(out, "rb") as picture:
        return picture.read()


def text_box(element):
    """(left, top, right, bottom) of a text, with letters as wide as those of a wide font."""
    text, size = "".join(element.itertext()), float(element.get("font-size"))
    width = size * sum(0.3 if c in " .,·|-−()1il" else 0.62 for c in text)
    width *= 1.08 if element.get("font-weight") else 1
    before = {"start": 0, "middle": width / 2, "end": width}[element.get("text-anchor")]
    left, base = float(element.get("x")) - before, float(element.get("y"))
    return left, base - 0.72 * size, left + width, base + 0.1 * size


def check_texts(root):
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = [(text_box(e), "".join(e.itertext())) for e in root.iter(SVG + "text")]
    for i, (a, text) in enumerate(boxes):
        inside = a[0] >= 0 and a[1] >= 0 and a[2] <= width and a[3] <= height
        assert inside, f"'{text}' leaves the picture"
        for b, other in boxes[:i]:
            overlap = a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
            assert not overlap, f"'{text}' lies over '{other}'"


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def check_slots(graph):
    """Of each edge of a schedule half is seen between its nodes; lines end before arrow heads."""
    if next(graph.iter(SVG + "path"), None) is not None:
        return
    radius = max(float(e.get("r")) for e in graph.iter(SVG + "circle"))
    for line in graph.iter(SVG + "line"):
        x1, y1, x2, y2 = numbers(line, "x1", "y1", "x2", "y2")
        length = math.hypot(x2 - x1, y2 - y1)
        assert length - 2 * radius >= length / 2, f"nodes hide an edge: {length} of radius {radius}"


def check_curves(panel):
    """Each curve goes on until it leaves the plot, but for one that never does."""
    lines = [
        numbers(e, "x1", "x2", "y1")
        for e in panel.iter(SVG + "line")
        if e.get("stroke") == "#5f6b7a"
    ]
    _, right, bottom = max(lines, key=lambda line: line[1] - line[0])
    ends = {}
    for path in panel.iter(SVG + "path"):
        points = re.findall(r"(-?[\d.]+)[ ,](-?[\d.]+)", path.get("d"))
        ends[path.get("stroke")] = tuple(map(float, points[-1]))  # what goes on comes later
    for colour, (x, y) in ends.items():
        assert x >= right - 1 or y >= bottom - 1, f"{colour} stops at {x}, {y} in mid-air"


def check_picture(starling, file):
    with tempfile.TemporaryDirectory(prefix="starling-picture-") as folder:
        data = draw(starling, file, folder)
    root = tree.fromstring(data)
    assert root.tag == SVG + "svg", root.tag
    known = set("svg title desc g rect line circle path text tspan".split())
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= known, "an unknown element"
    drawn = re.sub(rb"<(title|desc)>.*?</\1>", b"", data)
    assert not re.search(rb"nan|inf(?!o)", drawn), "a number that is none"
    for element in root.iter():
        for name in ("cx", "cy", "x1", "y1", "x2", "y2"):
            at = float(element.get(name, 0))
            assert -1 <= at <= 1000, f"{name} = {at} is outside"
    check_texts(root)
    facts = root.find(SVG + "desc").text
    nodes, edges = map(int, re.match(r"(\d+) nodes? · (\d+) edge", facts).groups())
    graph = next(e for e in root.iter(SVG + "g") if e.get("id") == "graph")
    circles = len(list(graph.iter(SVG + "circle")))
    if circles > nodes:
        check_slots(graph)
    if nodes > 1:
        check_curves(next(e for e in root.iter(SVG + "g") if e.get("id") == "agreement"))
    if circles > 0:
        assert circles % nodes == 0, f"{circles} circles for {nodes} nodes"
    else:
        assert nodes > 500 or edges > 6000, f"no node of {nodes} is seen"
    return circles // nodes, nodes, edges, graph


def check_shipped(starling, file):
    check_picture(starling, file)


def check_ring(starling):
    """Of a plain graph, each edge is one line; and a second time there are the same bytes."""
    file = os.path.join(ROOT, "topologies", "ring-8.json")
    with tempfile.TemporaryDirectory(prefix="starling-picture-") as folder:
        assert draw(starling, file, folder) == draw(starling, file, folder), "other bytes"
    panels, nodes, edges, graph = check_picture(starling, file)
    assert (panels, nodes, edges, len(list(graph.iter(SVG + "line")))) == (1, 8, 8, 8)


def check_schedule(starling):
    """Of a schedule, each slot and all together; edges of round 3 have both directions, so that
    they are lines without arrows."""
    file = os.path.join(ROOT, "topologies", "one-peer-exponential-8.json")
    panels, nodes, _, graph = check_picture(starling, file)
    found = panels, nodes, len(list(graph.iter(SVG + "path")))
    assert found == (4, 8, 16), "16 arrows in rounds 1 and 2"


def check_made(starling, arguments):
    with tempfile.TemporaryDirectory(prefix="starling-picture-") as folder:
        file = os.path.join(folder, "made.json")
        made = call(starling, "topology", "make", *arguments.split(), "-o", file)
        assert made.returncode == 0, made.stderr
        check_picture(starling, file)


def check_readme(starling):
    """The table of topologies/README.md is that of the files, and each file has its picture."""
    script = os.path.join(ROOT, "tools", "topologies")
    ended = call(sys.executable, script, starling, "--check")
    assert ended.returncode == 0, ended.stderr.strip()


def all_checks(starling):
    shipped = sorted(glob.glob(os.path.join(ROOT, "topologies", "*.json")))
    tests = [(os.path.basename(file), check_shipped, file) for file in shipped]
    tests += [(arguments, check_made, arguments) for arguments in MADE]
    for name, check, what in tests[:: 3 if QUICK else 1]:
        yield f"picture of {name}", functools.partial(check, starling, what)
    yield "each edge of a ring is a line", functools.partial(check_ring, starling)
    yield "each slot of a schedule is shown", functools.partial(check_schedule, starling)
    yield "the table of the shipped files", functools.partial(check_readme, starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 2))
