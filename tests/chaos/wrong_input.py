#!/usr/bin/env python3
"""Wrong input gets one error line that names file, key, value and what is allowed; nothing is
started, nothing is left. wrong_training.py has what concerns algorithms and data.

usage: wrong_input.py STARLING [TEST ...]
"""
import json
import os
import socket
import subprocess

from _refusals import SHORT, refuse, refuse_everywhere
from _scene import check, run_tests


def unknown_key(scene):
    refuse_everywhere(
        scene,
        "experiment.json",
        "optimizer.learning_rat",
        "learning_rate",
        optimizer__learning_rat=0.1,
    )


def unknown_top_level_key(scene):
    refuse_everywhere(scene, "experiment.json", "topologie", "topology", topologie={"nodes": 3})


def text_for_a_group_without_a_name(scene):
    refuse_everywhere(scene, "experiment.json", 'record: "often"', "every", record="often")


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


def keys_without_effect(scene):
    path = scene.experiment(**SHORT, algorithm__period=5)
    ended = scene.call("check", path)
    check(ended.code == 0, ended.err)
    check(ended.err.count("warning: algorithm.period") == 1, ended.err)


def wrong_type(scene):
    refuse_everywhere(
        scene, "experiment.json", "optimizer.learning_rate", "fast", optimizer__learning_rate="fast"
    )


def out_of_range(scene):
    refuse_everywhere(
        scene, "experiment.json", "optimizer.momentum", "1.5", optimizer__momentum=1.5
    )


def not_a_number(scene):
    path = scene.write(
        "experiment.json",
        (
            '{"rounds": 3, "topology": {"nodes": 3, "family": "ring"}, "optimizer":'
            ' {"learning_rate": NaN}}'
        ),
    )
    scene.call("check", path).check_refused("experiment.json")


def not_a_number_in_set(scene):
    path = scene.experiment(**SHORT)
    scene.call("check", path, "--set", "optimizer.learning_rate=NaN").check_refused(
        "optimizer.learning_rate", "NaN"
    )


def not_json(scene):
    scene.call("check", scene.write("experiment.json", '{\n "rounds": 3,\n oops\n}')).check_refused(
        "experiment.json", "3"
    )


def missing_file(scene):
    for command in ("run", "sim", "check"):
        scene.call(command, scene.path("nowhere.json")).check_refused(
            "nowhere.json", "no such file"
        )


def row_does_not_sum_to_one(scene):
    refuse_everywhere(
        scene,
        "row 1",
        "0.9",
        topology={"nodes": 2, "edges": [[0, 0, 0.5], [0, 1, 0.4], [1, 0, 0.5], [1, 1, 0.5]]},
    )


def column_does_not_sum_to_one(scene):
    refuse_everywhere(
        scene,
        "column",
        "0.1",
        topology={"nodes": 2, "edges": [[0, 0, 0.5], [0, 1, 0.4], [1, 0, 0.5], [1, 1, 0.6]]},
    )


def disconnected_graph(scene):
    refuse_everywhere(
        scene,
        "connected",
        topology={"nodes": 4, "edges": [[0, 1], [2, 3]], "weights": "metropolis"},
    )


def self_loop_without_weight(scene):
    refuse_everywhere(
        scene,
        "self-loop",
        topology={"nodes": 2, "edges": [[0, 1], [1, 1]], "weights": "metropolis"},
    )


def duplicate_edge(scene):
    refuse_everywhere(
        scene, "0", "1", topology={"nodes": 2, "edges": [[0, 1], [1, 0]], "weights": "metropolis"}
    )


def topology_file_missing(scene):
    refuse_everywhere(scene, "ring.json", topology="ring.json")


def too_many_nodes_for_processes(scene):
    refuse(scene, "65", "64", "sim", topology={"nodes": 65, "family": "ring"})


def output_folder_in_the_way(scene):
    scene.write("file", "")
    for command in ("run", "sim"):
        ended = scene.call(command, scene.experiment(**SHORT), "--out", scene.path("file/out"))
        ended.check_refused("file/out")


def output_folder_not_writable(scene):
    for command in ("run", "sim"):
        scene.call(command, scene.experiment(**SHORT), "--out", "/proc/starling").check_refused(
            "/proc/starling"
        )


def output_folder_holds_a_run(scene):
    path = scene.experiment(**SHORT)
    first = scene.call("sim", path, "--out", scene.path("out"))
    check(first.code == 0, f"exit code {first.code}: {first.err!r}")
    before = open(scene.path("out/summary.json")).read()
    scene.call("sim", path, "--out", scene.path("out")).check_refused("out")
    check(open(scene.path("out/summary.json")).read() == before, "the earlier run was changed")


def disk_full(scene):
    """In a tiny file system of its own."""
    disk = scene.path("disk")
    os.mkdir(disk)
    wrapper = (
        "unshare",
        "-rm",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=64k none "{disk}" && exec "$@"',
        "sh",
    )
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
        return "no mount namespace for ordinary users here"
    for command in ("sim", "run"):
        path = scene.experiment(rounds=200, record__every=2, record__parameters_at=[1, 2, 3])
        ended = scene.call(command, path, "--out", f"{disk}/{command}", wrapper=wrapper)
        ended.check_refused("no space left", f"{disk}/{command}", code=1)
    return None


def port_in_use(scene):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        roster = scene.write(
            "roster", f"127.0.0.1:{port}\n" + "".join(f"127.0.0.1:{20000 + i}\n" for i in range(7))
        )
        ended = scene.call(
            "agent",
            scene.experiment(**SHORT),
            "--rank",
            "0",
            "--roster",
            roster,
            "--out",
            scene.path("out"),
        )
        ended.check_refused(str(port), "in use")
    check(not os.path.exists(scene.path("out")), "a run folder was left behind")


def roster_of_another_size(scene):
    roster = scene.write("roster", "127.0.0.1:20000\n127.0.0.1:20001\n")
    scene.call("agent", scene.experiment(**SHORT), "--rank", "0", "--roster", roster).check_refused(
        "roster", "2", "8"
    )


def roster_malformed(scene):
    roster = scene.write("roster", "127.0.0.1:20000\n127.0.0.1:lots\n")
    scene.call("agent", scene.experiment(**SHORT), "--rank", "0", "--roster", roster).check_refused(
        "roster", "2", "lots"
    )


def rank_beyond_the_topology(scene):
    roster = scene.write("roster", "".join(f"127.0.0.1:{20000 + i}\n" for i in range(8)))
    scene.call("agent", scene.experiment(**SHORT), "--rank", "8", "--roster", roster).check_refused(
        "rank", "8", "7"
    )


def bad_usage(scene):
    path = scene.experiment(**SHORT)
    for arguments in (
        ("fly",),
        ("run",),
        ("run", path, path),
        ("run", path, "--fast"),
        ("agent", path),
        ("agent", path, "--rank", "0"),
        ("agent", path, "--rank", "zero", "--roster", path),
        ("sim", path, "--rank", "0"),
        ("run", path, "--set", "no-value"),
    ):
        scene.call(*arguments).check_refused()


def pictures_that_cannot_be_drawn(scene):
    ring = scene.write("ring.json", '{"nodes": 8, "family": "ring"}')
    picture = scene.path("x.svg")
    for arguments, words in (
        ((ring,), ("-o",)),
        ((ring, ring, "-o", picture), ("one FILE",)),
        ((scene.path("nowhere.json"), "-o", picture), ("nowhere.json",)),
        (
            (scene.write("parts.json", '{"nodes": 4, "edges": [[0, 1], [2, 3]]}'), "-o", picture),
            ("parts.json", "connected"),
        ),
        (
            (scene.write("huge.json", '{"nodes": 2000000, "family": "ring"}'), "-o", picture),
            ("huge.json", "1000000"),
        ),
    ):
        scene.call("topology", "draw", *arguments).check_refused(*words)
    check(not os.path.exists(picture), "a picture was left behind")
    scene.call("topology", "draw", ring, "-o", scene.path("nowhere/x.svg")).check_refused(
        "nowhere/x.svg", code=1
    )


def rankings_of_what_cannot_be_ranked(scene):
    links = scene.write("links.json", '{"nodes": 4, "bandwidth_mbit": 100}')
    for arguments, words in (
        ((), ("--nodes",)),
        (("--nodes", "1"), ("--nodes 1", "2", "10000")),
        (("--nodes", "10001"), ("10001", "10000")),
        (("--nodes", "4", "ring.json"), ("no file",)),
        (("--nodes", "4", "--epsilon", "1"), ("--epsilon 1", "below 1")),
        (("--nodes", "4", "--parameters", "0"), ("--parameters 0", "1")),
        (("--nodes", "4", "--link", "100"), ("--link 100", "MBIT:MS")),
        (("--nodes", "4", "--links", links, "--link", "1:1"), ("one of --links and --link",)),
        (("--nodes", "5", "--links", links), ("links.json", "4", "5")),
        (("--nodes", "4", "--links", scene.path("nowhere.json")), ("nowhere.json",)),
    ):
        scene.call("topology", "rank", *arguments).check_refused(*words)


def topologies_that_cannot_be_made(scene):
    path = scene.path("made.json")
    for arguments, words in (
        (("ring",), ("nodes", "missing")),
        (("rnig", "--nodes", "4"), ("rnig", '"ring"')),
        ((), ("which family",)),
        (("ring", "path", "--nodes", "4"), ("path",)),
        (("ring", "--nodes", "four"), ("nodes", "four", "integer")),
        (("ring", "--nodes", "4", "--degree", "2"), ("degree", "ring", "no parameters")),
        (("ring", "--nodes", "4", "--degre", "2"), ("degre", '"degree"')),
        (("ring", "--nodes", "4", "--nodes", "5"), ("--nodes", "twice")),
        (("ring", "--nodes"), ("--nodes", "missing")),
        (("ring", "--nodes", "4", "-x", "5"), ("-x", "unknown")),
        (("ring", "--nodes", "4", "--weights", "metropolys"), ("metropolys", "metropolis")),
        (("random-regular", "--nodes", "5", "--degree", "3"), ("degree", "odd")),
        (("torus", "--nodes", "12", "--sides", "3,5"), ("sides", "15", "12")),
        (("base-k", "--nodes", "5", "--weights", "uniform"), ("weights", "base-k", "its own")),
        (("erdos-renyi", "--nodes", "50", "--probability", "0.001"), ("connected", "probability")),
        (("complete", "--nodes", "1000000"), ("1000000", "directed edges")),
        (("ring", "--nodes", "2000000", "--expand"), ("2000000", "1000000")),
    ):
        scene.call("topology", "make", *arguments, "-o", path).check_refused(*words)
        check(not os.path.exists(path), f"{arguments}: a file was written")
    scene.call(
        "topology", "make", "ring", "--nodes", "4", "-o", scene.path("nowhere/x.json")
    ).check_refused("nowhere/x.json", code=1)


def topology_that_is_not_what_its_hash_says(scene):
    path = scene.path("made.json")
    ended = scene.call("topology", "make", "torus", "--nodes", "12", "-o", path)
    check(ended.code == 0, f"exit code {ended.code}: {ended.err!r}")
    check(scene.call("check", path).code == 0, "what was made is refused")
    changed = scene.write("changed.json", open(path).read().replace("[3,4]", "[4,3]"))
    scene.call("check", changed).check_refused("changed.json", "hash", "changed")


def analyse(scene, topology, *options):
    return scene.call("topology", "analyse", scene.write("topology.json", topology), *options)


def topologies_that_cannot_be_analysed(scene):
    """Of a matrix that is almost stochastic: which row, and by how much."""
    almost = (
        '{"nodes": 3, "edges": [[0, 0, 0.5], [0, 1, 0.5], [1, 0, 0.5], [1, 1, 0.250001], [1, 2,'
        " 0.25], [2, 1, 0.25], [2, 2, 0.75]]}"
    )
    analyse(scene, almost).check_refused("topology.json", "row 1", "1.000001", "1e-06")
    analyse(scene, '{"nodes": 5, "family": "random-regular", "degree": 3}').check_refused(
        "degree", "3", "5"
    )
    analyse(scene, '{"nodes": 2000000, "family": "random-regular", "degree": 3}').check_refused(
        "random-regular", "2000000", "1000000"
    )
    analyse(scene, '{"nodes": 2000000, "family": "ring"}', "--spectrum").check_refused(
        "topology.json", "spectrum", "2000000", "2000"
    )
    ring = '{"nodes": 4, "family": "ring"}'
    links = scene.write("links.json", '{"nodes": 3, "latency_ms": 1}')
    for options, words in (
        (("--require", "quick"), ("quick", "gap=X")),
        (("--require", "gap"), ("gap=0.5",)),
        (("--require", "exact=3"), ("exact", "no value")),
        (("--epsilon", "2"), ("epsilon", "2")),
        (("--parameters", "many"), ("parameters", "many")),
        (("--links", links), ("links.json", "3", "4")),
        (("--links", scene.path("none.json")), ("none.json",)),
        (("--fast",), ("--fast",)),
    ):
        analyse(scene, ring, *options).check_refused(*words)


def topologies_that_are_not_good_enough(scene):
    """The analysis is printed all the same, and a line says what does not hold."""
    ring = '{"nodes": 8, "family": "ring"}'
    for topology, options, words in (
        (ring, ("--require", "connected", "--require", "gap=0.5"), ("gap=0.5", "0.195")),
        (ring, ("--require", "exact"), ("exact",)),
        ('{"nodes": 4, "edges": [[0, 1], [2, 3]]}', (), ("connected", "2 parts")),
    ):
        ended = analyse(scene, topology, *options)
        check(
            ended.code == 1 and "spectral gap" in ended.out and len(ended.err.splitlines()) == 1,
            f"code {ended.code}, {ended.err!r}",
        )
        check(all(word in ended.err for word in words), f"{words} are not all in {ended.err!r}")
    ended = analyse(
        scene,
        ring,
        "--require",
        "doubly-stochastic",
        "--require",
        "gap=0.19",
        "--require",
        "diameter=4",
        "--require",
        "rounds=32",
    )
    check(ended.code == 0 and not ended.err, f"code {ended.code}, {ended.err!r}")


def averages_that_swing_for_ever(scene):
    """lambda_n = -1 is explained, and the lazy form of the weights offered; with it there is
    nothing to explain."""
    ended = analyse(scene, '{"nodes": 4, "family": "ring", "weights": "max-degree0"}')
    check(
        ended.code == 0
        and "bipartite and no node keeps" in ended.out
        and "lazy-max-degree0" in ended.out,
        f"code {ended.code}, {ended.out!r}",
    )
    ended = analyse(scene, '{"nodes": 4, "family": "ring", "weights": "lazy-max-degree0"}')
    check(ended.code == 0 and "note" not in ended.out, f"code {ended.code}, {ended.out!r}")
    ring = {"nodes": 4, "family": "ring", "weights": "metropolis0"}
    half = {"name": "choco-sgd", "consensus_step": 0.5}
    for algorithm in ("exact-diffusion", half, "all-reduce"):
        ended = scene.call("check", scene.experiment(**SHORT, topology=ring, algorithm=algorithm))
        check(
            ended.code == 0 and "warning" not in ended.out,
            f"{algorithm}: code {ended.code}, {ended.out!r}",
        )
    whole = {**half, "consensus_step": 1}
    ended = scene.call("check", scene.experiment(**SHORT, topology=ring, algorithm=whole))
    check(ended.code == 2 and "consensus_step below 1" in ended.err, f"{ended.code}, {ended.err!r}")
    for command in ("sim", "run"):
        out = scene.path("swinging")
        ended = scene.call(command, scene.experiment(**SHORT, topology=ring), "--out", out)
        check(
            ended.code == 2
            and ended.err.startswith("starling: ")
            and "lambda_n = -1" in ended.err
            and '"lazy-metropolis0"' in ended.err
            and len(ended.err.splitlines()) == 1
            and not os.path.exists(out),
            f"code {ended.code}, {ended.err!r}",
        )


def a_w_that_drives_models_apart(scene):
    """A listed W of rho 1.156: refused for training by what mixes with it, and explained by
    analyse."""
    rows = [[0.5, 0.6, -0.1], [0.6, 0.4, 0], [-0.1, 0, 1.1]]
    edges = [[j, i, rows[i][j]] for i in range(3) for j in range(3) if rows[i][j] != 0]
    topology = {"nodes": 3, "edges": edges}
    for command in ("sim", "run"):
        out = scene.path("apart")
        ended = scene.call(command, scene.experiment(**SHORT, topology=topology), "--out", out)
        check(
            ended.code == 2
            and ended.err.startswith("starling: ")
            and "topology.weights" in ended.err
            and "1.1557" in ended.err
            and "below 1" in ended.err
            and not os.path.exists(out),
            f"{command}: code {ended.code}, {ended.err!r}",
        )
    ended = analyse(scene, json.dumps(topology))
    check(ended.code == 0 and "1.1557" in ended.out, f"code {ended.code}, {ended.out!r}")
    ended = scene.call(
        "check", scene.experiment(**SHORT, topology=topology, algorithm="all-reduce")
    )
    check(ended.code == 0, f"all-reduce: code {ended.code}, {ended.err!r}")


def averages_that_run_away(scene):
    """Weights that sum to 1 and all the same drive nodes apart."""
    weights = (
        '{"nodes": 3, "edges": [[0,0,-1.8], [1,1,-1.8], [2,2,-1.8], [0,1,1.4], [1,0,1.4],'
        " [1,2,1.4], [2,1,1.4], [0,2,1.4], [2,0,1.4]]}"
    )
    ended = analyse(scene, weights)
    check(
        ended.code == 0
        and "rho is above 1" in ended.out
        and "infinite with the same data" in ended.out,
        f"code {ended.code}, {ended.out!r}",
    )
    ended = scene.call("check", scene.write("apart.json", weights))
    check(ended.code == 0 and "never agree" in ended.out, f"code {ended.code}, {ended.out!r}")


def help_and_version(scene):
    for arguments in (
        ("--help",),
        ("--version",),
        ("run", "--help"),
        ("agent", "--help"),
        ("sim", "--help"),
        ("check", "--help"),
        ("topology", "--help"),
        ("topology", "make", "--help"),
        ("topology", "analyse", "--help"),
    ):
        ended = scene.call(*arguments)
        check(
            ended.code == 0 and ended.out and not ended.err,
            f"{arguments}: code {ended.code}, stderr {ended.err!r}",
        )


if __name__ == "__main__":
    run_tests(
        [
            unknown_key,
            unknown_top_level_key,
            wrong_type,
            out_of_range,
            not_a_number,
            not_a_number_in_set,
            not_json,
            missing_file,
            row_does_not_sum_to_one,
            column_does_not_sum_to_one,
            disconnected_graph,
            self_loop_without_weight,
            duplicate_edge,
            topology_file_missing,
            too_many_nodes_for_processes,
            text_for_a_group_without_a_name,
            more_memory_than_there_is,
            more_memory_than_a_process_may_take,
            keys_without_effect,
            output_folder_in_the_way,
            output_folder_not_writable,
            output_folder_holds_a_run,
            disk_full,
            port_in_use,
            roster_of_another_size,
            roster_malformed,
            rank_beyond_the_topology,
            topologies_that_cannot_be_made,
            topology_that_is_not_what_its_hash_says,
            pictures_that_cannot_be_drawn,
            rankings_of_what_cannot_be_ranked,
            topologies_that_cannot_be_analysed,
            topologies_that_are_not_good_enough,
            averages_that_swing_for_ever,
            averages_that_run_away,
            a_w_that_drives_models_apart,
            bad_usage,
            help_and_version,
        ]
    )
