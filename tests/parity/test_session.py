#!/usr/bin/env python3
"""Sessions: examples/embed.c learns, in processes with the bits of a simulation; and what `check`
says of them. tests/python/test_formulas.py has loops beside the float64 reference."""
import os
import re
import subprocess

from _here import ROOT, check, free_ports, run_tests

EXAMPLE = os.path.join(ROOT, "examples", "session.json")


def lines_of(*processes):
    """What they write, in order."""
    ended = [process.communicate(timeout=120) for process in processes]
    check(all(process.returncode == 0 for process in processes), f"{ended}")
    return sorted(line for out, _ in ended for line in out.splitlines())


def the_example_learns_from_all_peers_data(scene):
    command, n = [scene.built("tests/embed"), EXAMPLE], 4
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    simulated = lines_of(subprocess.Popen([*command, str(n)], **pipes))
    roster = ",".join(f"127.0.0.1:{port}" for port in free_ports(n))
    where = {**os.environ, "STARLING_SIZE": str(n), "STARLING_ROSTER": roster}
    started = [
        subprocess.Popen(command, env={**where, "STARLING_RANK": str(rank)}, **pipes)
        for rank in range(n)
    ]
    check(lines_of(*started) == simulated, f"processes do not say {simulated}")
    found = re.findall(r"average ([\d.]+), models are ([\d.e-]+) apart", "\n".join(simulated))
    check(len(found) == n and len(set(found)) == 1, f"{simulated}")
    check(float(found[0][0]) > 0.9, f"{simulated}")


def what_a_user_should_know_is_said_before(scene):
    masked = 'algorithm={"name": "d-psgd", "compressor": "shared-mask"}'
    data = "data.name=mnist", "model.name=mlp"
    lazy, linear = 'no weights are named: "lazy', "linear in the gradient"
    unread = [f"warning: {key} has no effect in a session" for key in ("data.name", "model.name")]
    stable = "stable for          learning rate * curvature < 2 min W_ii = 1\n"
    for form, keys, code, words in (
        ("overlap", [], 0, ["1 + lambda_n = 1.333", lazy]),
        ("mix", [], 0, [lazy]),
        ("other", [], 2, ["mix"]),
        ("overlap", ["topology.family=one-peer-exponential"], 0, [stable]),
        ("mix", ["algorithm.name=gradient-tracking", *data], 0, [linear, *unread]),
        ("mix", ["algorithm.name=exact-diffusion", *data], 0, [linear, *unread]),
        ("mix", [masked, "final_average=true"], 0, ["final_average has no effect in a session"]),
        ("overlap", ["optimizer.momentum=0.9"], 2, ["momentum"]),
        ("overlap", ["algorithm.name=sgp"], 2, ["d-psgd"]),
        ("overlap", [masked], 2, ["sends vectors as they are"]),
    ):
        sets = [word for key in ("topology.nodes=8", *keys) for word in ("--set", key)]
        ended = scene.call("check", EXAMPLE, *sets, "--session", form)
        check(ended.code == code, f"{form}, {keys}: {ended.code}, {ended.said}")
        check(all(word in ended.said for word in words), f"{form}, {keys}: {ended.said}")
        check(form == "overlap" or "1 + lambda_n" not in ended.said, ended.said)


if __name__ == "__main__":
    run_tests()
