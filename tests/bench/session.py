#!/usr/bin/python3
"""What the exchange beside a step costs the thread that trains: two peers over loopback, a vector
of D numbers, d-psgd.

From C (session.c) and from a torch script whose optimizer gossips (peer.attach): steps that only
wait, and steps that keep the processor busy. Prints a table of medians. `calls` is what begin and
end take on the thread that trains, or an optimizer.step() that has nothing else to do; `processor`
the processor time of that; `stall` how long they wait for the exchange; `beside` the processor time
of all other threads; `passes` what one thread needs at least for the copies of a round.

usage: session.py [--build BUILD] [D [STEP_S [ROUNDS]]]     meson compile -C BUILD session
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXPERIMENT = {"topology": {"family": "path"}}
PEERS = 2


def compute(torch, step_s, works):
    """A step's forward and backward pass."""
    until = time.thread_time() + step_s
    if not works:
        time.sleep(step_s)
    a = torch.ones(128, 128)
    while works and time.thread_time() < until:
        a = torch.mm(a, a).clamp_(0, 1)


def train(dimension, step_s, rounds, works, borrow):
    """One peer, from torch: the medians of session.c that can be seen from there."""
    import starling
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Linear(dimension, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)  # has no gradients, and nothing to do
    costs = {name: [] for name in ("round", "calls", "processor", "stall", "others")}
    with starling.join(EXPERIMENT, model, borrow=borrow) as peer:
        peer.attach(optimizer)
        optimizer.step()
        for _ in range(rounds):
            began, waited = time.monotonic(), peer.metrics()["wait_s"]
            others = time.process_time() - time.thread_time()
            compute(torch, step_s, works)
            at, used = time.monotonic(), time.thread_time()
            optimizer.step()
            ended = time.monotonic()
            costs["processor"].append(time.thread_time() - used)
            costs["round"].append(ended - began)
            costs["calls"].append(ended - at)
            costs["stall"].append(peer.metrics()["wait_s"] - waited)
            costs["others"].append(time.process_time() - time.thread_time() - others)
    print(json.dumps({name: statistics.median(values) for name, values in costs.items()}))


def run(command, build):
    """The medians of the peer whose calls took longest."""
    port = 20000 + os.getpid() % 20000
    environment = {
        **os.environ,
        "STARLING_SIZE": str(PEERS),
        "STARLING_ROSTER": ",".join(f"127.0.0.1:{port + rank}" for rank in range(PEERS)),
        "STARLING_LIBRARY": os.path.join(build, "src", "libstarling.so.0"),
        "PYTHONPATH": os.path.join(ROOT, "src", "python"),
        "OMP_NUM_THREADS": "1",
    }
    peers = [
        subprocess.Popen(
            command,
            env={**environment, "STARLING_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(PEERS)
    ]
    said = [peer.communicate()[0] for peer in peers]
    if any(peer.returncode for peer in peers):
        sys.exit(f"session.py: {command}: exit codes {[peer.returncode for peer in peers]}")
    return max((json.loads(text) for text in said), key=lambda costs: costs["calls"])


def row(name, costs):
    share = 100 * costs["calls"] / costs["round"]
    passes = f"{1e3 * costs['passes']:.1f}" if "passes" in costs else "-"
    exchange = f"{1e3 * costs['exchange']:.0f}" if "exchange" in costs else "-"
    return (
        f"| {name} | {1e3 * costs['round']:.0f} | {1e3 * costs['calls']:.1f} | {share:.2f} % "
        f"| {1e3 * costs['processor']:.1f} | {1e3 * costs['stall']:.1f} | {exchange} "
        f"| {1e3 * costs['others']:.0f} | {passes} |"
    )


def main():
    if sys.argv[1:2] == ["--train"]:
        dimension, step_s, rounds, how, what = sys.argv[2:]
        works, borrow = how == "work", what == "borrow"
        return train(int(dimension), float(step_s), int(rounds), works, borrow)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("dimension", nargs="?", default="25500000")
    parser.add_argument("step_s", nargs="?", default="1")
    parser.add_argument("rounds", nargs="?", default="20")
    options = parser.parse_args()
    program = os.path.join(os.path.abspath(options.build), "tests", "bench", "session")
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not built (meson compile -C BUILD session)")
    ways = {"C": [program], "torch": [sys.executable, os.path.abspath(__file__), "--train"]}
    try:
        import torch  # noqa: F401
    except ImportError:
        print("torch: this Python has none (apt-get install python3-torch)")
        del ways["torch"]
    size = [options.dimension, options.step_s, options.rounds]
    print(f"{PEERS} peers, d = {int(options.dimension):,}, {os.cpu_count()} cores; ms\n")
    heads = "from, step|round|calls|of the round|processor|stall|exchange|beside|passes".split("|")
    print(f"| {' | '.join(heads)} |")
    print("|:--" + "|--:" * (len(heads) - 1) + "|")
    for how, words in (("sleep", "waits"), ("work", "computes")):
        for what in ("snapshot", "borrow"):
            for name, command in ways.items():
                costs = run([*command, *size, how, what], os.path.abspath(options.build))
                print(row(f"{name}, {words}, {what}", costs), flush=True)


if __name__ == "__main__":
    main()
