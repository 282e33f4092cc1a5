#!/usr/bin/env python3
"""The wheel in a virtual environment that has nothing else: peers average what they have, in one
process and over libfabric."""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "chaos"))
from _ports import free_ports  # noqa: E402
from _scene import check, run_tests  # noqa: E402

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1])))
PYTHON = "/usr/bin/python3"
PEERS = """
import array, starling, sys
pair = {"topology": {"nodes": 2, "family": "complete"}}

def train(number, **where):
    x = array.array("f", [number] * 3)
    with starling.join(pair, x, **where) as peer:
        peer.mix(x)
    return x.tolist()

if len(sys.argv) > 1:
    rank = int(sys.argv[1])
    print(train(rank, rank=rank, roster=sys.argv[2:]))
else:
    print(starling._library.library._name, starling.simulate(2, train, pair))
"""


DEVICES = """
import ctypes
from starling._library import library
why = ctypes.create_string_buffer(512)
print(library.sl_devices_list(None, 0, why), why.value)
"""


def call(*command, **options):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **options
    )
    check(done.returncode == 0, f"{command}: {done.returncode}, {done.stdout[-2000:]}")
    return done.stdout


def test_wheel_in_a_virtual_environment(scene):
    if subprocess.run([PYTHON, "-c", "import ensurepip"], capture_output=True).returncode != 0:
        return "no python3-venv here"
    call(os.path.join(ROOT, "tools", "wheel"), BUILD, scene.folder)
    there = scene.path("venv")
    call(PYTHON, "-m", "venv", there)
    call(there + "/bin/pip", "install", "--no-index", *glob.glob(scene.path("*.whl")))
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "STARLING_LIBRARY")
    }
    options = {"cwd": scene.folder, "env": environment}
    peer = [there + "/bin/python", scene.write("peer.py", PEERS)]
    name, said = call(*peer, **options).split(maxsplit=1)
    check(name.startswith(there) and said == "[[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]\n", (name, said))
    if os.path.exists(os.path.join(BUILD, "gpu", "libstarling-cuda.so")):
        said = call(there + "/bin/python", "-c", DEVICES, **options)
        check("no GPU plug-in" not in said and "cannot be loaded" not in said, said)
    roster = [f"127.0.0.1:{port}" for port in free_ports(2)]
    options.update(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peers = [subprocess.Popen([*peer, rank, *roster], **options) for rank in "01"]
    said = [process.communicate(timeout=300)[0] for process in peers]
    check(said == ["[0.5, 0.5, 0.5]\n"] * 2, said)
    return None


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
