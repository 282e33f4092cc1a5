#!/usr/bin/env python3
"""Help fits 80 columns, and a slip is answered with what was meant."""
import os

from _here import ROOT, check, run_tests

COMMANDS = ["run", "agent", "sim", "compare", "checkpoint", "status", "devices", "doctor", "check"]
COMMANDS += ["topology", "keys", "keys make", "keys roster"]
TOPOLOGY = ["topology " + word for word in ("make", "analyse", "draw", "rank")]
RING = os.path.join(ROOT, "topologies", "ring-8.json")


def test_help_fits_80_columns(scene):
    for command in ["", *COMMANDS, *TOPOLOGY]:
        asked = scene.call(*command.split(), "--help")
        check(asked.code == 0 and not asked.err, f"{command} --help: {asked.code}, {asked.err!r}")
        check(asked.out.startswith("usage: starling " + command), asked.out[:200])
        longest = max(asked.out.splitlines(), key=len)
        check(len(longest) <= 80, f"{command} --help: {longest!r}")
        told = scene.call("help", *command.split())
        check(told.out == asked.out and told.code == 0, f"help {command}: {told.out[:200]!r}")


def test_a_slip_is_answered(scene):
    path = scene.experiment()
    for arguments, word in (
        (["run", path, "--seed", "5"], "--set seed=5"),
        (["run", path, "--epochs=3"], "--set epochs=3"),
        (["sim", path, "--learning-rate", "0.1"], "--set optimizer.learning_rate=0.1"),
        (["sim", path, "--outt", "folder"], "--out?"),
        (["topology", "rank", "--node", "8"], "--nodes?"),
        (["analyze", RING], "starling topology analyse"),
        (["topology", "analyze", RING], "starling topology analyse"),
        (["comapre", path], "starling compare"),
        (["sim", RING], "starling topology analyse"),
        (["sim", path, path], "is another"),
        (["sim"], "which EXPERIMENT"),
        (["fly"], "fly"),
        (["agent", path, "--rank", "zero", "--roster", path], "zero"),
        (["sim", path, "--rank", "0"], "--rank"),
        (["check", path, "--set", "optimizer.learning_rate=NaN"], "NaN"),
        (["sim", path, "--out"], "a value is missing"),
        (["sim", path, "--wide=yes"], "takes no value"),
        (["help", "comapre"], "starling compare"),
        (["check", RING, "--set", "seed=1"], "--set seed=1"),
        (["sim", path, "--set", "topology=torus"], '"family": "torus"'),
        (["sim", path, "--set", "topology=no.json"], "no.json: No such"),
        (["sim", path, "--set", f"topology={path}"], "is an experiment"),
        (["topology", "draw", RING, "-o", scene.path("x.png")], ".svg"),
    ):
        scene.call(*arguments).check_refused(word)
    check(not os.path.exists(scene.path("runs")), "something was started")


def test_options_are_taken_in_all_forms(scene):
    path = scene.experiment(rounds=2)
    for number, options in enumerate((["--out", "{}"], ["--out={}"], ["--wide", "--out", "{}"])):
        folder = scene.path(f"run-{number}")
        ended = scene.call("sim", *[option.format(folder) for option in options], "--", path)
        check(ended.code == 0 and os.path.isdir(folder), f"{options}: {ended.err!r}")


if __name__ == "__main__":
    run_tests()
