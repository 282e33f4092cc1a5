#!/usr/bin/env python3
"""Models of others by their sizes: agents end as the simulator does, wait as long as a gradient is
said to take, and predicted seconds are the closed forms."""
import json

from _here import check, read_json, run_tests
from _scene import read_bytes

NODES, ROUNDS, BATCH, GFLOPS, HEADER = 3, 3, 16, 5000, 64
PARAMETERS = 11689512  # ResNet-18
GRADIENT = 6 * 1814073344 * BATCH / (1e9 * GFLOPS)
CHUNK = 114688
BASE = {
    "name": "synthetic",
    "rounds": ROUNDS,
    "topology": {"nodes": NODES, "family": "ring"},
    "model": {"name": "synthetic", "table": "resnet18", "gflops": GFLOPS},
    "algorithm": "parameter-server",
    "data": {"batch": BATCH},
    "record": {"every": ROUNDS, "safetensors": False},
    "network": {"bandwidth_mbit": 1000, "latency_ms": 1, "coding": False},
    "transport": {"timeout_s": 60, "connect_timeout_s": 60},
}


def write(scene, **changes):
    return scene.write("synthetic.json", json.dumps({**BASE, **changes}))


def test_agents_end_like_the_simulator_and_take_their_time(scene):
    """And predicted seconds are the closed form: all to one server, whose link takes them by turns,
    and back."""
    path = write(scene)
    for command in ("sim", "run"):
        scene.call(command, path, "--out", scene.path(command), timeout=300).check_well()
    models = [read_bytes(scene.path(f"{out}/model.npy")) for out in ("sim", "run")]
    check(models[0] == models[1], "another model")
    for node in read_json(scene.path("run"), "summary.json")["per_node"]:
        took = node["seconds"]["gradient"]
        check(took >= ROUNDS * GRADIENT, f"gradients took {took}, not {ROUNDS * GRADIENT}")
    parts = -(-4 * PARAMETERS // CHUNK)
    dense = 8e-6 / 1000 * (4 * PARAMETERS + HEADER * parts)
    expected = ROUNDS * (GRADIENT + 2 * ((NODES - 1) * dense + 1e-3))
    predicted = read_json(scene.path("sim"), "summary.json")["predicted_seconds"]
    check(abs(predicted - expected) < 0.01 * expected, f"{predicted}, expected {expected}")


def test_check_says_what_it_is(scene):
    ended = scene.call("check", write(scene))
    for words in (
        "synthetic resnet18, 11689512 parameters in 62 tensors; batches of 16",
        "1.088e+04 million operations for a sample's gradient, 931.1 a parameter",
        "34.83 ms at model.gflops",
    ):
        check(words in ended.out, f"no {words!r} in {ended.out}")
    for model_is in ({"name": "synthetic", "table": "lenet"}, {"name": "synthetic", "gflops": -1}):
        scene.call("check", write(scene, model=model_is)).check_refused("model.")
    scene.call("check", write(scene, rounds=0, epochs=2)).check_refused(
        "epochs: a synthetic model has no data", "data.train_samples"
    )
    longer = write(scene, rounds=0, epochs=2, data={"batch": 16, "train_samples": 4800})
    ended = scene.call("check", longer)
    check("200 rounds of 16 samples" in ended.out, f"{ended.out}{ended.err}")


if __name__ == "__main__":
    run_tests()
