#!/usr/bin/python3
"""examples/torch_mnist.py with four peers under torchrun, beside the plain script, without the
lines for Starling, in one process: the lines, the accuracies and the times.

MNIST's four IDX files (plain or .gz) are looked for in $STARLING_DATA/mnist, by default
../shared/data/mnist beside the project. Needs torch.

usage: torch_mnist.py [BUILD [EPOCHS]]
"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time

import _bench

sys.path.insert(0, os.path.join(_bench.ROOT, "tests", "chaos"))
from _torchrun import torchrun  # noqa: E402

SCRIPT = os.path.join(_bench.ROOT, "examples", "torch_mnist.py")
PEERS = 4


def train(command, environment):
    """(accuracy, seconds) of a script."""
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = re.search(r"accuracy ([\d.]+)", done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"torch_mnist.py: {command}: exit code {done.returncode}\n{done.stderr}")
    return float(found[1]), time.monotonic() - began


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(_bench.ROOT, "build")
    epochs = sys.argv[2] if len(sys.argv) > 2 else "3"
    if importlib.util.find_spec("torch") is None:
        sys.exit("torch_mnist.py: this Python has no torch (apt-get install python3-torch)")
    data, environment = _bench.data_folder("mnist"), _bench.package_environment(build)
    with open(SCRIPT) as file:
        lines = file.read().splitlines(keepends=True)
    added = [line for line in lines if line.endswith("# starling\n")]
    print(f"{len(added)} lines for Starling:\n" + "".join(added))
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain.py")
        with open(plain, "w") as file:
            file.writelines(line for line in lines if line not in added)
        alone, seconds = train([sys.executable, plain, data, epochs], environment)
        print(f"one process: accuracy {alone:.4f} in {seconds:.0f} s", flush=True)
        meeting = os.path.join(folder, "meeting")
        command, variables = torchrun(PEERS, meeting, SCRIPT, data, epochs)
        peers, seconds = train(command, {**environment, **variables})
    print(f"{PEERS} peers: accuracy {peers:.4f} in {seconds:.0f} s")
    print(f"difference {100 * (peers - alone):+.2f} points")


if __name__ == "__main__":
    main()
