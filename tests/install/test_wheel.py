#!/usr/bin/env python3
"""The wheel in a virtual environment that has nothing else: peers average what they have, in one
process and over libfabric."""
import base64
import glob
import hashlib
import os
import re
import subprocess
import zipfile

from _install import BUILD, ROOT, call, check, free_ports, needs, run_tests

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


# What is computed here needs no libfabric; peers over a network do, and say so.
ALONE = """
import starling, ctypes
print(starling._library.library._name.split("/")[-1], starling._library.IS_CORE)
ring = {"nodes": 8, "family": "ring", "weights": "metropolis"}
print(round(starling.spectrum(ring).rho, 6))
print(round(starling.spectrum({"nodes": 9, "family": "star"}).rho, 3))
print("libfabric" in open("/proc/self/maps").read())
starling._library.FABRIC = "libfabric.so.gone"
try:
    starling.join({"topology": ring}, (ctypes.c_float * 4)(), rank=0, roster=["127.0.0.1:1"] * 8)
except starling.Error as error:
    print(error)
"""


def check_wheel(path):
    """Its size, name and list of files."""
    check(os.path.getsize(path) < 5e6, f"{os.path.getsize(path)} bytes")
    check(re.search(r"-py3-none-manylinux_2_\d\d_\w+[.]whl$", path), path)
    with zipfile.ZipFile(path) as file:
        record = next(name for name in file.namelist() if name.endswith("/RECORD"))
        rows = [row.split(",") for row in file.read(record).decode().splitlines()]
        for name, digest, size in rows[:-1]:
            content = file.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            check(digest == "sha256=" + found.rstrip("=") and size == str(len(content)), name)
        check({row[0] for row in rows} == set(file.namelist()), "RECORD lists other files")


def test_wheel_in_a_virtual_environment(scene):
    has_venv = subprocess.run([PYTHON, "-c", "import ensurepip"], capture_output=True)
    needs(has_venv.returncode == 0, "no python3-venv here")
    call(os.path.join(ROOT, "tools", "wheel"), BUILD, scene.folder)
    there = scene.path("venv")
    call(PYTHON, "-m", "venv", there)
    (wheel,) = glob.glob(scene.path("*.whl"))
    check_wheel(wheel)
    call(there + "/bin/pip", "install", "--no-index", wheel)
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "STARLING_LIBRARY")
    }
    options = {"cwd": scene.folder, "env": environment}
    peer = [there + "/bin/python", scene.write("peer.py", PEERS)]
    name, said = call(*peer, **options).split(maxsplit=1)
    check(name.startswith(there) and said == "[[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]\n", (name, said))
    lines = call(there + "/bin/python", "-c", ALONE, **options).splitlines()
    expected = ["libstarling-core.so True", "0.804738", "0.889", "False"]
    check(lines[:4] == expected, lines)
    check("libfabric is not installed" in lines[4] and "libfabric1" in lines[4], lines)
    if os.path.exists(os.path.join(BUILD, "gpu", "libstarling-cuda.so")):
        said = call(there + "/bin/python", "-c", DEVICES, **options)
        check("no GPU plug-in" not in said and "cannot be loaded" not in said, said)
    roster = [f"127.0.0.1:{port}" for port in free_ports(2)]
    options.update(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peers = [subprocess.Popen([*peer, rank, *roster], **options) for rank in "01"]
    said = [process.communicate(timeout=300)[0] for process in peers]
    check(said == ["[0.5, 0.5, 0.5]\n"] * 2, said)


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
