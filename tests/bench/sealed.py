#!/usr/bin/env python3
"""What a key costs: rounds of agents on a ring without one, with data left open, and sealed.

The three take turns, so that whatever else the machine does meets them alike. The table has, of the
turns without a key, the median of a round, and the ratios to it of the others' medians; then, of
sealed turns, those of the fastest rounds and of processor time. `AES alone` is how long all cores
need to seal and open what a round sends, as fast as tests/bench/seals does on one. The last lines
are 16 handshakes. It is Markdown (docs/security.md). Another OpenSSL: LD_LIBRARY_PATH.

usage: sealed.py [--build BUILD] [--turns N]
           meson compile -C BUILD starling gossip_agents handshakes seals
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CHOCO = ("algorithm.name=choco-sgd", "algorithm.compressor.name=top-k")
CHOCO += ("algorithm.compressor.fraction=0.01",)
CASES = [
    (2, 25_500_000, 30, ()),
    (4, 25_500_000, 20, ()),
    (8, 25_500_000, 10, ()),
    (2, 25_500_000, 20, CHOCO),
    (4, 25_500_000, 20, CHOCO),
]


def timed(*command):
    """What it writes, and the processor's time, of all its processes, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, spent


def measure(build, turns, nodes, dimension, rounds, more, key):
    """{setting: [median, fastest, processor's time], each of all turns}"""
    program = os.path.join(build, "tests", "bench", "gossip_agents")
    sizes = (str(nodes), str(dimension), str(rounds))
    settings = {seal: (f"security.key={key}", f"security.seal={seal}") for seal in ("off", "on")}
    found = {"none": [], "off": [], "on": []}
    for _ in range(turns):
        for setting, results in found.items():
            out, spent = timed(program, *sizes, *more, *settings.get(setting, ()))
            result = json.loads(out)
            results.append((result["median_ms"], result["min_ms"], spent))
    return {setting: list(zip(*results)) for setting, results in found.items()}


def line(case, found, rate):
    nodes, dimension, _, more = case
    none, off, on = (found[setting] for setting in ("none", "off", "on"))
    median = statistics.median(none[0])
    ratios = [statistics.median(one[0]) / median for one in (off, on)]
    ratios += [min(on[1]) / min(none[1])]
    ratios += [statistics.median(on[2]) / statistics.median(none[2])]
    sent = nodes * min(2, nodes - 1) * 4 * dimension
    alone = "" if more else f"{2 * sent / rate / 1e6:.3g} ms"
    name = f"{nodes}, {dimension / 1e6:g} M" + (", CHOCO-SGD, top-1 %" if more else "")
    cells = [name, f"{median:.3g} ms", *(f"{ratio:.2f}" for ratio in ratios), alone]
    print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    starling = os.path.join(build, "tools", "starling")
    with tempfile.TemporaryDirectory(prefix="starling-sealed-") as folder:
        key, node = (os.path.join(folder, name) for name in ("run.key", "node"))
        timed(starling, "keys", "make", "-o", key)
        timed(starling, "keys", "make", "--node", "-o", node)
        said = timed(os.path.join(build, "tests", "bench", "seals"))[0]
        seals = json.loads(said)
        rate = seals[seals["agents use"]] * os.cpu_count()
        print(f"GB/s of a core: {said}")
        print("| agents, numbers | no key | open | sealed | fastest | processor | AES alone |")
        print("|:--|--:|--:|--:|--:|--:|--:|", flush=True)
        for case in CASES:
            line(case, measure(build, options.turns, *case, key), rate)
        for what, name in (("key", key), ("certificates", node)):
            program = os.path.join(build, "tests", "bench", "handshakes")
            found = json.loads(timed(program, name)[0])
            print(f"16 handshakes, {what}: {found['median_ms']:.3g} ms")


if __name__ == "__main__":
    main()
