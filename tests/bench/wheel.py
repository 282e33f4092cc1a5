#!/usr/bin/python3
"""From `pip install` of the wheel, in a fresh virtual environment, to the first gossip of two
processes: seconds, and how large the wheel is.

usage: wheel.py [BUILD]     a meson build folder; needs venv (apt-get install python3-venv)
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEER = """
import array, sys, starling
rank = int(sys.argv[1])
x = array.array("f", [rank])
with starling.join({"topology": {"nodes": 2, "family": "complete"}}, x, rank=rank,
                   roster=sys.argv[2]) as peer:
    peer.mix()
assert x[0] == 0.5, x
"""


def gossip(python):
    """Two processes average 0 and 1."""
    port = 20000 + os.getpid() % 20000
    roster = f"127.0.0.1:{port},127.0.0.1:{port + 1}"
    peers = [subprocess.Popen([python, "-c", PEER, str(rank), roster]) for rank in range(2)]
    codes = [peer.wait() for peer in peers]
    if any(codes):
        sys.exit(f"wheel.py: the peers ended with {codes}")


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            "wheel.py: this Python makes no virtual environments (apt-get install python3-venv)"
        )
    for name in ("STARLING_LIBRARY", "PYTHONPATH"):  # the wheel's own ones count
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        tool = os.path.join(ROOT, "tools", "wheel")
        made = subprocess.run([tool, build, folder], capture_output=True, text=True, check=True)
        wheel = made.stdout.strip()
        environment = os.path.join(folder, "environment")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = os.path.join(environment, "bin", "python")
        began = time.monotonic()
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", wheel], check=True)
        installed = time.monotonic()
        gossip(python)
        ended = time.monotonic()
        print(f"{os.path.basename(wheel)}: {os.path.getsize(wheel) / 1e6:.2f} MB")
        print(f"pip install {installed - began:.1f} s, then two processes' first gossip", end=" ")
        print(f"{ended - installed:.1f} s; together {ended - began:.1f} s")


if __name__ == "__main__":
    main()
