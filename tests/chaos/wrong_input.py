#!/usr/bin/env python3
"""Wrong input gets one error line that names file, key, value and what is allowed; nothing is
started, nothing is left. The library's tests have the mistakes themselves (test_experiment_errors,
test_topology, test_roster, test_data, test_learner); here each command meets one of each kind, and
those of its own. Algorithms that do not suit their topology are parity/test_said.py's. A run that
diverges ends on all nodes."""
import json
import os
import shutil

from _scene import check, run_tests

RING = '{"nodes": 4, "family": "ring"}'
SHORT = {"rounds": 4, "record__every": 2}


def refuse_everywhere(scene, *words, commands=("check", "sim", "run"), **changes):
    """The changed experiment is refused, and no run folder appears."""
    path = scene.experiment(**{**SHORT, **changes})
    for command in commands:
        out = () if command == "check" else ("--out", scene.path("out"))
        scene.call(command, path, *out).check_refused(*words)
        check(not os.path.exists(scene.path("out")), "a run folder was left behind")


def wrong_keys_and_values(scene):
    for changes, words in (
        ({"optimizer__learning_rat": 0.1}, ("optimizer.learning_rat", "learning_rate")),
        ({"optimizer__learning_rate": "fast"}, ("optimizer.learning_rate", "fast")),
    ):
        refuse_everywhere(scene, "experiment.json", *words, **changes)


def wrong_topologies(scene):
    rows = [[0, 0, 0.5], [0, 1, 0.4], [1, 0, 0.5], [1, 1, 0.5]]
    refuse_everywhere(scene, "row 1", "0.9", topology={"nodes": 2, "edges": rows})
    refuse_everywhere(scene, "ring.json", topology="ring.json")
    many = scene.experiment(**SHORT, topology={"nodes": 65, "family": "ring"})
    scene.call("run", many, "--out", scene.path("out")).check_refused("65", "64", "sim")


def wrong_files(scene):
    broken = scene.write("experiment.json", '{\n "rounds": 3,\n oops\n}')
    for command in ("run", "sim", "check"):
        scene.call(command, scene.path("nowhere.json")).check_refused("nowhere", "no such file")
        scene.call(command, broken).check_refused("experiment.json", "3")


def more_memory_than_there_is(scene):
    huge = {
        "topology": {"nodes": 60, "family": "path"},
        "model": {"name": "mlp", "hidden": [50000, 20000]},
        "data": "digits",
    }
    variants = [{"name": "as-it-is", "set": {}}]
    calls = (
        (["sim"], {}, "60 simulated nodes"),
        (["run"], {}, "60 agents"),
        (["compare"], {"variants": variants}, "60 simulated nodes"),
        (["compare", "--agents"], {"variants": variants}, "60 agents"),
    )
    for command, more, who in calls:
        path = scene.write("huge.json", json.dumps({"rounds": 2, **huge, **more}))
        ended = scene.call(*command, path, "--out", scene.path("out"))
        ended.check_refused("huge.json", who, "GB", "topology.nodes")
        check(not os.path.exists(scene.path("out")), "a run folder was left behind")


def more_memory_than_a_process_may_take(scene):
    """60 models of 12.7 MB are 763 MB, however little the program itself takes."""
    large = {
        "topology": {"nodes": 60, "family": "path"},
        "model": {"name": "mlp", "hidden": [4000]},
        "data": {"name": "digits", "train_samples": 120, "test_samples": 10},
    }
    path = scene.write("large.json", json.dumps({"rounds": 2, **large}))
    for kind in ("as", "data"):
        limit = ["prlimit", f"--{kind}={700 << 20}"]
        ended = scene.call("sim", path, "--out", scene.path("out"), wrapper=limit)
        ended.check_refused("large.json", "ulimit", "topology.nodes")
        check(not os.path.exists(scene.path("out")), "a run folder was left behind")


def output_folders_that_cannot_be_made(scene):
    scene.write("file", "")
    path = scene.experiment(**SHORT)
    for command in ("run", "sim"):
        for folder in (scene.path("file/out"), "/proc/starling"):
            scene.call(command, path, "--out", folder).check_refused(folder)


def topologies_that_cannot_be_made_drawn_or_ranked(scene):
    """Nothing is written."""
    made, picture, ring = scene.path("made.json"), scene.path("x.svg"), scene.write("r.json", RING)
    links = scene.write("links.json", '{"nodes": 4, "bandwidth_mbit": 100}')
    parts = scene.write("parts.json", '{"nodes": 4, "edges": [[0, 1], [2, 3]]}')
    for words, told in (
        ("make ring -o MADE", "nodes missing"),
        ("make rnig --nodes 4 -o MADE", 'rnig "ring"'),
        ("make ring --nodes 2000000 --expand -o MADE", "2000000 1000000"),
        ("draw RING", "-o"),
        ("draw PARTS -o PICTURE", "parts.json connected"),
        ("rank", "--nodes"),
        ("rank --nodes 4 --link 100", "--link MBIT:MS"),
        ("rank --nodes 5 --links LINKS", "links.json 4 5"),
    ):
        for name, path in (("MADE", made), ("PICTURE", picture), ("RING", ring)):
            words = words.replace(name, path)
        for name, path in (("PARTS", parts), ("LINKS", links)):
            words = words.replace(name, path)
        scene.call("topology", *words.split()).check_refused(*told.split())
        check(not os.path.exists(made) and not os.path.exists(picture), f"{words}: is written")
    for words in (f"make ring --nodes 4 -o {made}/x", f"draw {ring} -o {scene.path('none/x.svg')}"):
        scene.write("made.json", "")
        scene.call("topology", *words.split()).check_refused(words.split()[-1], code=1)


def analyse(scene, topology, options=""):
    path = scene.write("topology.json", topology)
    return scene.call("topology", "analyse", path, *options.split())


def topologies_that_are_not_good_enough(scene):
    """The analysis is printed all the same, and a line says what does not hold."""
    ring = '{"nodes": 8, "family": "ring"}'
    for topology, options, told in (
        (ring, "--require connected --require gap=0.5", "gap=0.5 0.195"),
        (ring, "--require exact", "exact"),
        ('{"nodes": 4, "edges": [[0, 1], [2, 3]]}', "", "connected 2 parts"),
    ):
        ended = analyse(scene, topology, options)
        ended.check_refused(*told.split(), code=1)
        check("spectral gap" in ended.out, ended.out)
    good = [f"--require {what}" for what in ("doubly-stochastic", "gap=0.19", "diameter=4")]
    ended = analyse(scene, ring, " ".join([*good, "--require rounds=32"]))
    check(ended.code == 0 and not ended.err, f"code {ended.code}, {ended.err!r}")


def weights_that_never_agree(scene):
    """Averages swing for ever (lambda_n = -1), or drive models apart (rho 1.156, 3.2): training
    that mixes with them is refused, other training not, and the analysis says why."""
    rows = [[0.5, 0.6, -0.1], [0.6, 0.4, 0], [-0.1, 0, 1.1]]
    edges = [[j, i, rows[i][j]] for i in range(3) for j in range(3) if rows[i][j] != 0]
    swings = {"nodes": 4, "family": "ring", "weights": "metropolis0"}
    for topology, said, refused in (
        (swings, "bipartite and no node keeps", ("lambda_n = -1", '"lazy-metropolis0"')),
        ({"nodes": 3, "edges": edges}, "1.1557", ("topology.weights", "1.1557", "below 1")),
    ):
        ended = analyse(scene, json.dumps(topology))
        check(ended.code == 0 and said in ended.out, f"code {ended.code}, {ended.out!r}")
        refuse_everywhere(scene, *refused, commands=("sim", "run"), topology=topology)
        path = scene.experiment(**SHORT, topology=topology, algorithm="all-reduce")
        scene.call("check", path).check_well()
    lazy = analyse(scene, json.dumps({**swings, "weights": "lazy-metropolis0"}))
    check(lazy.code == 0 and "note" not in lazy.out, f"code {lazy.code}, {lazy.out!r}")
    half = {"name": "choco-sgd", "consensus_step": 0.5}
    for algorithm in ("exact-diffusion", half):
        ended = scene.call("check", scene.experiment(**SHORT, topology=swings, algorithm=algorithm))
        check(ended.code == 0 and "warning" not in ended.out, f"{algorithm}: {ended.out!r}")
    path = scene.experiment(**SHORT, topology=swings, algorithm={**half, "consensus_step": 1})
    scene.call("check", path).check_refused("consensus_step below 1")
    away = [[i, j, -1.8 if i == j else 1.4] for i in range(3) for j in range(3)]
    away = json.dumps({"nodes": 3, "edges": away})
    ended = analyse(scene, away)
    for words in ("rho is above 1", "infinite with the same data"):
        check(ended.code == 0 and words in ended.out, f"code {ended.code}, {ended.out!r}")
    ended = scene.call("check", scene.write("apart.json", away))
    check(ended.code == 0 and "never agree" in ended.out, f"code {ended.code}, {ended.out!r}")


def divergence_ends_the_run_on_all_nodes(scene):
    """And the model that was recorded last is kept. The rate grows, so that there are such
    rounds."""
    path = scene.experiment(
        rounds=400,
        optimizer__learning_rate=1e3,
        loss_limit=25,
        record__every=1,
        optimizer__schedule={"name": "constant", "warmup_rounds": 400},
    )
    for command in ("sim", "run"):
        ended = scene.call(command, path, "--out", scene.path(command))
        check(ended.code == 1, f"{command}: exit code {ended.code}: {ended.err!r}")
        for word in ("diverged", "round", "node", "model-last.npy"):
            check(word in ended.err, f"{command}: no {word!r} in {ended.err!r}")
        found = set(os.listdir(scene.path(command)))
        check("model-last.npy" in found and "model.npy" not in found, f"{command}: {found}")


def check_warned(scene, experiment, *words):
    """By check, sim and run, once each."""
    for command in ("check", "sim", "run"):
        more = [] if command == "check" else ["--out", scene.path(f"{command}-out")]
        ended = scene.call(command, experiment, *more)
        ended.check_well()
        said = " ".join((ended.out + ended.err).split())
        for word in words:
            check(said.count(word) == 1, f"{command}: {word!r} {said.count(word)} times: {said}")
        if more:
            shutil.rmtree(more[1])


def held_out_samples_that_measure_nothing_are_told(scene):
    """Files sorted by label: the held-out part has one that is not trained, or lacks some."""
    lines = [f"{label} 1:{0.1 * i:.1f} 2:{label}" for label in (-1, 7) for i in range(20)]
    files = {"sorted.svm": lines[:28], "half.svm": lines, "only.svm": lines[:25]}
    for name, rows in files.items():
        scene.write(name, "\n".join(rows))
    data = {"name": "libsvm", "batch": 2}
    common = {"rounds": 4, "record": {"every": 4}, "topology__nodes": 2, "model": "softmax"}
    hint = "shuffle the file, or name data.test_path"
    for name, *words in (
        ("sorted.svm", "the held-out fifth, the end of the file, has nothing of label -1", hint),
        ("half.svm", "has nothing of label -1; shuffle", hint),
        ("only.svm", "label 7, of which nothing is trained, and has nothing of label -1;"),
    ):
        check_warned(scene, scene.experiment(data={**data, "path": name}, **common), *words)
    scene.write("test.svm", "\n".join(lines[::-4]))
    path = scene.experiment(data={**data, "path": "half.svm", "test_path": "test.svm"}, **common)
    ended = scene.call("sim", path, "--out", scene.path("well"))
    check(ended.code == 0 and "held-out samples" not in ended.err, f"{ended.err!r}")


if __name__ == "__main__":
    run_tests()
