#!/usr/bin/env python3
"""Models in safetensors and .npy: what the command writes, an independent reader reads; what an
independent writer writes, the command starts from."""
import os

import numpy

from _here import check, read_json, read_lines, run_tests
from _tensors import packed, read

MLP = {"dense1.weight": (784, 16), "dense1.bias": (16,), "dense2.weight": (16, 10)}
MLP["dense2.bias"] = (10,)


def vector_of(path):
    """The numbers of a safetensors file."""
    tensors, _, header = read(path)
    check({k: v.shape for k, v in tensors.items()} == MLP, f"{path}: {tensors.keys()}")
    check(all(v.dtype == "float32" for v in tensors.values()), f"{path}: other numbers")
    check(len(header) % 64 == 0 and header[8:9] == b"{", f"a header of {len(header)} bytes")
    return numpy.concatenate([values.ravel() for values in tensors.values()])


def drawn(shapes):
    random = numpy.random.default_rng(7)
    return {name: random.normal(0, 0.1, shape).astype("float32") for name, shape in shapes.items()}


def simulate(scene, out, command="sim", **changes):
    path = scene.experiment(rounds=2, topology__nodes=4, **changes)
    scene.call(command, path, "--out", scene.path(out)).check_well()
    return scene.path(out)


def initial(folder):
    """The parameters of all nodes before the first round."""
    records = read_lines(folder, "parameters.jsonl")
    return [numpy.array(r["parameters"], "float32") for r in records if r["round"] == 0]


def test_what_a_run_writes_can_be_read(scene):
    folder = simulate(scene, "out")
    for name in ("model", "model-best"):
        numbers = vector_of(os.path.join(folder, name + ".safetensors"))
        vector = numpy.load(os.path.join(folder, name + ".npy"))
        check(vector.tobytes() == numbers.tobytes(), f"{name}: not the numbers of .npy")
    stored = [f for f in os.listdir(folder) if f.startswith("model-") and "safe" in f]
    check(stored == ["model-best.safetensors"], f"models of nodes are stored twice: {stored}")
    folder = simulate(scene, "plain", record__safetensors=False)
    check(not [f for f in os.listdir(folder) if "safetensors" in f], "written although refused")


MEAN = ["model-best.npy", "model-best.safetensors", "model.npy", "model.safetensors"]
KEPT = {"none": [], "mean": MEAN, "all": sorted(MEAN + [f"model-{i}.npy" for i in range(4)])}


def test_a_run_folder_keeps_the_models_that_are_asked_for(scene):
    """Nothing else changes; who looks for a model that is not there is told why."""
    rows = set()
    for driver in "sim", "run":
        for models, kept in KEPT.items():
            path = scene.experiment(rounds=2, topology__nodes=4, record__models=models)
            out = scene.path(f"{driver}-{models}")
            result = scene.call(driver, path, "--out", out)
            check(result.code == 0, result.err)
            found = sorted(f for f in os.listdir(out) if f.startswith("model"))
            check(found == kept, f"{driver}, {models}: {found}")
            summary = read_json(out, "summary.json")
            rows.add(repr([summary["mean_model"], summary["best"]]))
            made = scene.call("average", out)
            if models != "all":
                said = "holds no model-RANK.npy, and no good checkpoint", 'record.models "all"'
                made.check_refused(*said)
    check(len(rows) == 1, rows)


def test_a_run_that_fails_keeps_no_model_where_none_is_asked_for(scene):
    for models, told in ("none", False), ("mean", True):
        path = scene.experiment(rounds=40, record__models=models, optimizer__learning_rate=1e6)
        out = scene.path(models)
        result = scene.call("sim", path, "--set", "record.every=1", "--out", out)
        check(result.code == 1 and ("model-last.npy" in result.err) == told, result.err)
        left = any(f.startswith("model-last") for f in os.listdir(out))
        check(left == told, f"{models}: {os.listdir(out)}")


def test_a_run_starts_from_what_another_program_wrote(scene):
    tensors = drawn(MLP)
    vector = numpy.concatenate([tensors[name].ravel() for name in MLP])
    # In another order than the model's.
    scene.write("a.safetensors", packed({name: tensors[name] for name in sorted(MLP)[::-1]}))
    numpy.save(scene.path("a.npy"), vector)
    for name in ("a.safetensors", "a.npy"):
        out = name.replace(".", "-")
        folder = simulate(scene, out, model__start=scene.path(name), record__parameters_at=[0])
        starts = initial(folder)
        check(len(starts) == 4, f"{len(starts)} nodes")
        for x in starts:
            check(x.tobytes() == vector.tobytes(), f"{name}: starts elsewhere")
    same = [vector_of(scene.path(f"a-{kind}/model.safetensors")) for kind in ("safetensors", "npy")]
    check(same[0].tobytes() == same[1].tobytes(), "two ways, two ends")


def test_a_run_goes_on_where_one_ended(scene):
    """Simulated, and agents likewise."""
    model = os.path.join(simulate(scene, "first"), "model.safetensors")
    more = {"model__start": model, "record__parameters_at": [0]}
    folders = [simulate(scene, out, out, **more) for out in ("sim", "run")]
    starts = [initial(folder)[2].tobytes() for folder in folders]
    check(starts == [vector_of(model).tobytes()] * 2, "starts elsewhere")
    ends = [vector_of(os.path.join(folder, "model.safetensors")) for folder in folders]
    check(ends[0].tobytes() == ends[1].tobytes(), "agents and simulator end elsewhere")


def test_a_file_that_does_not_fit_is_refused_by_name(scene):
    """Of each reader one; test_tensors.c has the others."""
    tensors = drawn(MLP)
    scene.write("turned", packed({**tensors, "dense1.weight": tensors["dense1.weight"].T}))
    numpy.save(scene.path("short.npy"), numpy.zeros(5, "float32"))
    for name, *words in (
        ("turned", '"dense1.weight"', "[16, 784]", "[784, 16]"),
        ("short.npy", "[5]", "[12730]"),
    ):
        path = scene.experiment(rounds=2, topology__nodes=4, model__start=scene.path(name))
        result = scene.call("sim", path, "--out", scene.path("refused"))
        result.check_refused("model.start", name, *words)
        check(not os.path.exists(scene.path("refused")), f"{name}: a run folder is left")


if __name__ == "__main__":
    run_tests()
