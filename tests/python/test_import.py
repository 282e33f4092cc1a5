#!/usr/bin/env python3
"""The Python package without a network: finding the library, model files, and what memory it
takes."""
import array
import ast
import ctypes
import glob
import json
import os
import re
import shutil
import struct
import subprocess

import _package
import numpy

import starling
from _scene import check, run_tests
from _package import refused
from _tensors import packed
from starling import _join, _library, _memory, _session, _topology


def python(code, scene, **environment):
    """Standard error's last line of another interpreter that runs `code`, or its output."""
    environment = {**os.environ, **environment}
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code],
        env={key: value for key, value in environment.items() if value is not None},
        cwd=scene.folder,
        capture_output=True,
        text=True,
    )
    return (done.stdout + (done.stderr.strip().splitlines() or [""])[-1]).strip()


def test_version(scene):
    said = subprocess.run([scene.starling, "--version"], capture_output=True, text=True).stdout
    check(said.split()[1] == starling.__version__, f"{starling.__version__}, {said}")


STRUCTS = {
    "sl_error": _library.CError,
    "sl_row": _topology._Row,
    "sl_spectrum": _topology._Spectrum,
    "sl_session_tensor": _session._Tensor,
    "sl_session_options": _session.Options,
    "sl_session_report": _session.Report,
}


def test_structs_are_those_of_the_headers(scene):
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <starling/starling.h>"]
    lines.append("int main(void) {")
    expected = []
    for name, kind in STRUCTS.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        expected.append((f"sizeof {name}", ctypes.sizeof(kind)))
        for field, _ in kind._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
            expected.append((f"{name}.{field}", getattr(kind, field).offset))
    source = scene.write("sizes.c", "\n".join([*lines, "return 0;", "}"]))
    program = scene.path("sizes")
    include = "-I" + os.path.join(_package.ROOT, "include")
    subprocess.run(["cc", include, source, "-o", program], check=True)
    found = subprocess.run([program], capture_output=True, text=True).stdout.split()
    for (what, mine), theirs in zip(expected, found):
        check(mine == int(theirs), f"{what}: {mine}, in C {theirs}")


def test_error_codes_are_those_of_the_header(scene):
    with open(os.path.join(_package.ROOT, "include", "starling", "error.h")) as file:
        rows = re.findall(r"X\((SL_E\w+), (-\d+),", file.read())
    check({int(code): name for name, code in rows} == _library.CODES, rows)


def test_package_is_python_3_9(scene):
    for path in glob.glob(os.path.join(_package.PACKAGE, "starling", "*.py")):
        with open(path) as file:
            tree = ast.parse(file.read(), path, feature_version=(3, 9))  # refuses match
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
        newer = {"aiter", "anext", "pairwise", "batched", "ExceptionGroup", "tomllib", "bit_count"}
        found = names & newer | keywords & {"strict", "slots", "kw_only"}
        check(not found, f"{path}: {found} came after Python 3.9")
        hints = [n for n in ast.walk(tree) if getattr(n, "annotation", None) is not None]
        later = "from __future__ import annotations" in ast.unparse(tree)
        check(later or not hints, f"{path}: X | Y came after 3.9, and hints are read at once")


WITHOUT = """
import array, sys
sys.modules["numpy"] = sys.modules["torch"] = None
import starling
def train(rank):
    x = array.array("f", [rank] * 3)
    with starling.join(None, x) as peer:
        peer.mix(x)
        average = peer.average()
    return x.tolist(), average.tolist(), average.format
two = {"topology": {"nodes": 2, "family": "complete"}}
print(starling.simulate(2, train, two))
print(starling.topology(two["topology"]).matrix)
class Module:
    def named_parameters(self): pass
    def state_dict(self): pass
for call in (lambda: starling.join(two, Module()), lambda: starling.load("model.safetensors"),
             lambda: starling._topology._by_numpy(starling.topology(two["topology"]))):
    try:
        call()
    except starling.Error as error:
        print(error)
"""


def test_without_numpy_and_torch(scene):
    scene.write("model.safetensors", packed({}))
    lines = python(WITHOUT, scene).splitlines()
    row = "([0.5, 0.5, 0.5], [0.5, 0.5, 0.5], 'f')"
    check(lines[0] == f"[{row}, {row}]" and lines[1] == "[[0.5, 0.5], [0.5, 0.5]]", lines)
    check("torch" in lines[2] and "is absent" in lines[2], lines)
    check("numpy is needed" in lines[3] and "numpy is absent" in lines[4], lines)


def test_wrong_experiments_and_numbers(scene):
    two, x = {"topology": {"nodes": 2, "family": "complete"}}, numpy.zeros(4, dtype="f4")
    for experiment, given, words in (
        (None, x, ["experiment is a NoneType", "a dict"]),
        ("nowhere.json", x, ["nowhere.json", "No such file"]),
        ("{", x, ["experiment:1:1"]),
        (two, numpy.zeros(4), ["float64", "float32", "before join()"]),
        (two, x[:0], ["empty"]),
        (two, [x, x[:0]], ["tensor 1 is empty"]),
        (two, [x, 3], ["tensor 1 is a int", "a list of those"]),
        (two, {"a": x}, ["x is a dict"]),
    ):
        refused(lambda: starling.join(experiment, given, rank=0, roster="a:1,b:2"), *words)
    refused(lambda: starling.simulate(3, print, two), "3 peers", "2 nodes")


def test_library_is_looked_for_in_order(scene):
    show = "import starling; print(starling._library.library._name)"
    mine = os.environ["STARLING_LIBRARY"]
    check(python(show, scene) == mine, python(show, scene))
    copy = scene.path("packages")
    shutil.copytree(os.path.join(_package.PACKAGE, "starling"), copy + "/starling")
    shutil.copy(mine, copy + "/starling/libstarling-core.so")
    said = python(show, scene, PYTHONPATH=copy, STARLING_LIBRARY="/nowhere.so")
    check(said == copy + "/starling/libstarling-core.so", said)
    folder = os.path.dirname(mine)
    said = python(show, scene, STARLING_LIBRARY=None, LD_LIBRARY_PATH=folder)
    check(said == "libstarling.so.0", said)


def test_absent_library_gets_one_sentence(scene):
    said = python("import starling", scene, STARLING_LIBRARY="/nowhere.so")
    for word in ("ImportError", "STARLING_LIBRARY=/nowhere.so", "install libstarling0"):
        check(word in said, said)


def test_absent_libfabric_gets_one_sentence(scene):
    gone, fake = scene.path("libfabric-gone.so"), scene.path("fake.so")
    source = scene.write("empty.c", "int empty;")
    for command in (["-o", gone], ["-o", fake, "-Wl,--no-as-needed", gone]):
        subprocess.run(["cc", "-shared", "-fPIC", source, *command], check=True)
    os.remove(gone)
    said = python("import starling", scene, STARLING_LIBRARY=fake)
    check("ImportError: libfabric is not installed" in said and "libfabric1" in said, said)


def test_load_reads_model_files(scene):
    tensors = {
        "a.weight": numpy.arange(6, dtype="f4").reshape(2, 3),
        "b": numpy.array(7, dtype="f4"),
    }
    path = scene.write("model.safetensors", packed(tensors))
    for place in (path, scene.folder):
        found = starling.load(place)
        check(list(found) == list(tensors), list(found))
        for name, values in tensors.items():
            check(found[name].shape == values.shape and (found[name] == values).all(), found)
    os.remove(path)
    numpy.save(scene.path("model.npy"), tensors["b"])
    check(starling.load(scene.folder)["model"] == 7, "model.npy")
    os.remove(scene.path("model.npy"))
    refused(lambda: starling.load(scene.folder), "holds no model")
    refused(lambda: starling.load(path), "no such file")


def test_load_reads_a_run(scene):
    run = scene.path("run")
    model = ["--set", "model.hidden=[8]", "--set", "model.name=mlp"]
    scene.call("sim", scene.experiment(rounds=2), *model, "--out", run).check_well()
    shapes = {name: array.shape for name, array in starling.load(run).items()}
    check(sorted(len(shape) for shape in shapes.values()) == [1, 1, 2, 2], shapes)
    flat = starling.load(run + "/model.npy")["model"]
    ordered = numpy.concatenate([array.ravel() for array in starling.load(run).values()])
    check((flat == ordered).all(), shapes)


def test_load_refuses_broken_files(scene):
    tensors = {"w": numpy.zeros((2, 3), dtype="f4")}
    whole = packed(tensors)
    for content in (
        b"",
        whole[:7],
        whole[:-1],
        struct.pack("<Q", 1 << 60) + whole[8:],
        whole[:8] + b"{" * (len(whole) - 8),
        packed(tensors, lambda header: header["w"].update(shape=[3, 3])),
        packed(tensors, lambda header: header["w"].update(dtype="F99")),
        packed(tensors, lambda header: header["w"].update(data_offsets=[-24, 0])),
        packed(tensors, lambda header: header.update(w=[])),
    ):
        path = scene.write("broken.safetensors", content)
        error = refused(lambda: starling.load(path), "broken.safetensors")
        check(error.code == "SL_EFILE", error.code)


def test_no_pipe_is_waited_for(scene):
    pipe, words = scene.path("pipe.npy"), "is not a regular file but a pipe"
    os.mkfifo(pipe)
    os.symlink(pipe, scene.path("pipe.safetensors"))
    for path in (pipe, scene.path("pipe.safetensors")):
        refused(lambda: starling.load(path), words)
    refused(lambda: starling.topology(pipe), words)
    refused(lambda: _join.simulate(1, int, pipe), words)
    refused(lambda: starling.load("/dev/zero"), "is not a regular file but a device")
    said = python("import starling", scene, STARLING_LIBRARY=pipe)
    check("it is no regular file" in said, said)


def test_errors_hold_nothing_that_a_terminal_obeys(scene):
    spite = "a\x1b]0;t\x07\x9b31m\n\x7f\u202e"
    shown = r"a\x1b]0;t\x07\xc2\x9b31m\x0a\x7f\xe2\x80\xae"
    refused(lambda: starling.load(scene.path(spite)), shown)
    refused(lambda: starling.topology({"nodes": 3, "family": spite}), shown)
    refused(lambda: _join.simulate(1, int, {spite: 1}), shown)
    header = json.dumps({spite: {"dtype": spite, "shape": [1], "data_offsets": [0, 4]}}).encode()
    path = scene.write("a.safetensors", struct.pack("<Q", len(header)) + header + bytes(4))
    check(str(refused(lambda: starling.load(path))).isprintable(), "load")
    check(starling.Error("\ud800 \udc9b é").args == ("\\ud800 \\udc9b é",), "surrogates")


class OnlyDlpack:
    """Hands out an array by DLPack and by nothing else."""

    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()


def test_memory_of_arrays(scene):
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    buffer = array.array("f", range(6))
    for x in (values, buffer, (ctypes.c_float * 6)(*range(6)), OnlyDlpack(values)):
        memory = _memory.memory_of(x)
        check(memory.count == 6 and memory.dtype == "float32", vars(memory))
        check(list(memory.floats()[:6]) == list(range(6)), type(x))
    memory = _memory.memory_of(OnlyDlpack(values[1:]))
    memory.floats()[0] = 30
    check(values[1, 0] == 30 and memory.shape == (1, 3), values)


def test_memory_that_is_refused(scene):
    values = numpy.zeros((4, 6), dtype="f4")
    read_only = values.copy()
    read_only.flags.writeable = False
    for x, words in (
        (values[:, ::2], ["w is not contiguous"]),
        (values.T, ["w is not contiguous"]),
        (OnlyDlpack(values.T), ["w is not contiguous"]),
        (OnlyDlpack(values, (2, 0)), ["w is on", "cpu"]),
        (values.astype("f8"), ["dtype float64", "float32"]),
        (OnlyDlpack(values.astype("f8")), ["dtype float64", "float32"]),
        (values.astype("i4"), ["dtype i", "float32"]),
        (read_only, ["w is read-only"]),
        ([1.0, 2.0], ["w is a list"]),
    ):
        refused(lambda: _memory.memory_of(x, "w"), *words)


if __name__ == "__main__":
    run_tests()
