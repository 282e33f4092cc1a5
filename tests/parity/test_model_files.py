#!/usr/bin/env python3
"""Models in safetensors and .npy: what the command writes, an independent reader reads; what an
independent writer writes, the command starts from."""
import json
import os
import struct

import numpy

from _here import check, run_tests

MLP = {"dense1.weight": (784, 16), "dense1.bias": (16,), "dense2.weight": (16, 10)}
MLP["dense2.bias"] = (10,)


def read(path):
    """The tensors of a safetensors file, and its numbers as one vector."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header, numbers = json.loads(data[8 : 8 + length]), data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        check(entry["dtype"] == "F32", f"{name}: {entry}")
        tensors[name] = numpy.frombuffer(numbers[begin:end], "<f4").reshape(entry["shape"])
    check((8 + length) % 64 == 0 and data[8:9] == b"{", f"header of {length} bytes")
    return tensors, numpy.frombuffer(numbers, "<f4")


def write(path, tensors, metadata=True):
    """In another order than the model's, with metadata, not padded."""
    header, numbers = {"__metadata__": {"format": "pt"}} if metadata else {}, b""
    for name in sorted(tensors, reverse=True):
        data = numpy.ascontiguousarray(tensors[name], "<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensors[name].shape),
            "data_offsets": [len(numbers), len(numbers) + len(data)],
        }
        numbers += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + numbers)


def drawn(shapes):
    random = numpy.random.default_rng(7)
    return {name: random.normal(0, 0.1, shape).astype("float32") for name, shape in shapes.items()}


def simulate(scene, out, **changes):
    path = scene.experiment(rounds=2, topology__nodes=4, **changes)
    result = scene.call("sim", path, "--out", scene.path(out))
    check(result.code == 0, result.err)
    return scene.path(out)


def initial(folder):
    """The parameters of all nodes before the first round."""
    with open(os.path.join(folder, "parameters.jsonl")) as lines:
        records = [json.loads(line) for line in lines]
    return [numpy.array(r["parameters"], "float32") for r in records if r["round"] == 0]


def test_what_a_run_writes_can_be_read(scene):
    folder = simulate(scene, "out")
    for name in ("model", "model-best"):
        tensors, numbers = read(os.path.join(folder, name + ".safetensors"))
        check({k: v.shape for k, v in tensors.items()} == MLP, f"{name}: {tensors.keys()}")
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
            with open(os.path.join(out, "summary.json")) as file:
                summary = json.load(file)
            rows.add(json.dumps([summary["mean_model"], summary["best"]]))
            made = scene.call("average", out)
            if models != "all":
                made.check_refused("holds no model-RANK.npy", 'record.models "all"')
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
    write(scene.path("a.safetensors"), tensors)
    numpy.save(scene.path("a.npy"), vector)
    for name in ("a.safetensors", "a.npy"):
        out = name.replace(".", "-")
        folder = simulate(scene, out, model__start=scene.path(name), record__parameters_at=[0])
        starts = initial(folder)
        check(len(starts) == 4, f"{len(starts)} nodes")
        for x in starts:
            check(x.tobytes() == vector.tobytes(), f"{name}: starts elsewhere")
    same = [read(scene.path(f"a-{kind}/model.safetensors"))[1] for kind in ("safetensors", "npy")]
    check(same[0].tobytes() == same[1].tobytes(), "two ways, two ends")


def test_a_run_goes_on_where_one_ended(scene):
    model = os.path.join(simulate(scene, "first"), "model.safetensors")
    folder = simulate(scene, "second", model__start=model, record__parameters_at=[0])
    check(initial(folder)[2].tobytes() == read(model)[1].tobytes(), "starts elsewhere")
    path = scene.experiment(rounds=2, topology__nodes=4, model__start=model)
    for command in ("run", "sim"):
        result = scene.call(command, path, "--out", scene.path("third-" + command))
        check(result.code == 0, result.err)
    ends = [read(scene.path(f"third-{c}/model.safetensors"))[1] for c in ("run", "sim")]
    check(ends[0].tobytes() == ends[1].tobytes(), "agents and simulator end elsewhere")


def test_a_file_that_does_not_fit_is_refused_by_name(scene):
    """Of each reader one; test_tensors.c has the others."""
    tensors = drawn(MLP)
    write(scene.path("turned"), {**tensors, "dense1.weight": tensors["dense1.weight"].T})
    numpy.save(scene.path("short.npy"), numpy.zeros(5, "float32"))
    for name, *words in (
        ("turned", '"dense1.weight"', "[16, 784]", "[784, 16]"),
        ("short.npy", "[5]", "[12730]"),
    ):
        path = scene.experiment(rounds=2, topology__nodes=4, model__start=scene.path(name))
        result = scene.call("sim", path, "--out", scene.path("refused"))
        result.check_refused("model.start", name, *words)
        check(not os.path.exists(scene.path("refused")), f"{name}: a run folder is left")


run_tests(
    [
        test_what_a_run_writes_can_be_read,
        test_a_run_folder_keeps_the_models_that_are_asked_for,
        test_a_run_that_fails_keeps_no_model_where_none_is_asked_for,
        test_a_run_starts_from_what_another_program_wrote,
        test_a_run_goes_on_where_one_ended,
        test_a_file_that_does_not_fit_is_refused_by_name,
    ]
)
