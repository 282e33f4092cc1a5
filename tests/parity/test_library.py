#!/usr/bin/env python3
"""algorithm.library: algorithms in a shared object outside the tree have the bits of Starling's
own, in the simulator and with agents; what is no such object is refused."""
import json
import os
import re
import subprocess

from _here import ROOT, check, read_json, run_tests

EXPERIMENT = {
    "rounds": 12,
    "topology": {"nodes": 4, "family": "ring", "weights": "metropolis"},
    "model": "softmax",
    "data": {"name": "digits", "train_samples": 160, "test_samples": 40, "batch": 8},
    "optimizer": {"learning_rate": 0.05, "momentum": 0.9},
    "record": {"parameters_at": [6, 12]},
    "transport": {"timeout_s": 20, "connect_timeout_s": 40},
}
CASES = {  # file: what its experiment has beside
    "naive_compression": ({"compressor": "scaled-sign"}, {}),
    "decentlam": ({"beta": 0.8}, {"optimizer": {"learning_rate": 0.05}}),
}


def build(scene, file, source, *flags):
    """A shared object of this text, as a user outside the tree builds it."""
    path, out = scene.write(f"{file}.c", source), scene.path(f"{file}.so")
    command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", *flags]
    command += ["-I", os.path.join(ROOT, "include"), path, "-o", out]
    built = subprocess.run(command, capture_output=True, text=True)
    check(built.returncode == 0, built.stderr)
    return out


def outside(name):
    """The source of one of Starling's own, under another name: "my-...". A key is named by its
    path."""
    with open(os.path.join(ROOT, "src", "algorithm", "gossip", f"{name}.c")) as file:
        text = re.sub(r'#include "algorithm/\w+\.h"\n', "", file.read())
    text = re.sub(r'\.name = "', '.name = "my-', text)
    text = re.sub(r"\{SL_ROW_BETA, [^}]*\}", '{"algorithm.beta"}', text)
    begin = re.compile(r"^const sl_algorithm \w+ =", re.M)
    text, found = begin.subn("static const sl_algorithm mine =", text)
    check(found == 1, f"{name}: {found} forms")
    return f"#include <starling/steps.h>\n{text}\nSL_ALGORITHM_LIBRARY(&mine);\n"


def run(scene, command, out, algorithm, changes):
    path = scene.write("e.json", json.dumps({**EXPERIMENT, **changes, "algorithm": algorithm}))
    ended = scene.call(command, path, "--out", scene.path(out), timeout=120)
    check(ended.code == 0, f"{command} {algorithm}: {ended.err}")
    with open(scene.path(f"{out}/parameters.jsonl"), "rb") as file:
        return file.read()


def test_bits_are_as_if_built_in(scene):
    for file, (keys, changes) in CASES.items():
        name = file.replace("_", "-")
        library = build(scene, file, outside(file))
        expected = run(scene, "sim", f"{file}-own", {"name": name, **keys}, changes)
        mine = {"name": f"my-{name}", "library": library, **keys}
        for command in ("sim", "run"):
            found = run(scene, command, f"{file}-{command}", mine, changes)
            check(found == expected, f"{command}: {name} has other bits outside")
        config = read_json(scene.path(f"{file}-sim/config.json"))
        check(config["algorithm"]["library"] == library, f"{config['algorithm']}")
        again = scene.path(f"{file}-again")
        ended = scene.call("sim", scene.path(f"{file}-sim/config.json"), "--out", again)
        check(ended.code == 0, ended.err)


def test_paths_are_relative_to_the_file_and_check_reads_it(scene):
    build(scene, "naive_compression", outside("naive_compression"))
    algorithm = {"name": "my-naive-compression", "library": "naive_compression.so", "beta": 0.5}
    path = scene.write("e.json", json.dumps({**EXPERIMENT, "algorithm": algorithm}))
    ended = scene.call("check", path)
    check(ended.code == 0 and "my-naive-compression" in ended.out, f"{ended.err} {ended.out}")
    check("algorithm.beta has no effect" in ended.err, ended.err)


def test_what_is_no_library_is_refused(scene):
    good = outside("naive_compression")
    older = good.replace("SL_ALGORITHM_LIBRARY", "#undef SL_ALGORITHM_ABI\n"
                         "#define SL_ALGORITHM_ABI 0u\nSL_ALGORITHM_LIBRARY")
    nameless = good.replace('.name = "my-naive-compression"', '.name = ""')
    keys = 'static const sl_key rows[] = {{"algorithm.own", SL_KEY_U64, 0}, {0}};\n'
    reads = good.replace("const sl_algorithm ", keys + "static const sl_algorithm ", 1)
    reads = reads.replace("static static", "static").replace(".name =", ".keys = rows, .name =")
    cases = {
        build(scene, "older", older): "built for another Starling (interface 0",
        build(scene, "other", "int nothing;\n"): "exports no starling_algorithm_library",
        build(scene, "nameless", nameless): "must have a name",
        build(scene, "reads", reads): "algorithm.own, which is no key",
        scene.write("text.so", "no object\n"): "cannot be loaded",
        scene.path("missing.so"): "missing.so",
        scene.folder: "cannot be loaded",
    }
    for library, words in cases.items():
        algorithm = {"name": "my-naive-compression", "library": library}
        path = scene.write("e.json", json.dumps({**EXPERIMENT, "algorithm": algorithm}))
        ended = scene.call("sim", path, "--out", scene.path("out"))
        ended.check_refused("algorithm.library", words)
    library = build(scene, "good", good)
    for name in ("naive-compression", "my-naive"):
        algorithm = {"name": name, "library": library}
        path = scene.write("e.json", json.dumps({**EXPERIMENT, "algorithm": algorithm}))
        ended = scene.call("sim", path, "--out", scene.path("out"))
        ended.check_refused("algorithm.name", name, "algorithm.library", "my-naive-compression")


if __name__ == "__main__":
    run_tests()
