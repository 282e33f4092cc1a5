#!/usr/bin/env python3
"""`starling keys`: what it writes, what it prints, and what it does not write over.

usage: keys.py STARLING [TEST ...]
"""
import os
import re
import stat

from _scene import check, run_tests

FINGERPRINT = r"sha256:[0-9a-f]{64}"


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def a_run_key_is_made_once(scene):
    path = scene.path("run.key")
    made = scene.call("keys", "make", "-o", path)
    check(made.code == 0 and not made.out, f"{made.code}, {made.out!r}, {made.err!r}")
    check(mode_of(path) == 0o600, oct(mode_of(path)))
    with open(path) as file:
        text = file.read()
    check(re.fullmatch("starling run key 1 [0-9a-f]{64}\n", text), "another text")
    scene.call("keys", "make", "-o", path).check_refused("run.key", "is there already")
    with open(path) as file:
        check(file.read() == text, "it was written over")
    scene.call("keys", "make").check_refused("-o")
    scene.call("keys", "make", "-o", scene.path("none/run.key")).check_refused("No such file")


def a_roster_holds_what_was_printed(scene):
    lines, places = [], []
    for rank in range(3):
        name, place = scene.path(f"node-{rank}"), f"10.0.0.{rank + 1}:7400"
        made = scene.call("keys", "make", "--node", "-o", name)
        check(re.fullmatch(FINGERPRINT + "\n", made.out), repr(made.out))
        check(mode_of(name + ".key") == 0o600, oct(mode_of(name + ".key")))
        lines.append(f"{rank} {place} {made.out}")
        places.append(f"{place}={name}.crt")
    printed = scene.call("keys", "roster", *places)
    check(printed.out == "".join(lines), f"{printed.out!r}, {printed.err!r}")
    places[2] = f"10.0.0.1:7400={scene.path('node-2')}.crt"
    scene.call("keys", "roster", *places).check_refused("ranks 0 and 2")
    scene.call("keys", "roster", "10.0.0.1:7400").check_refused("HOST:PORT=CERTIFICATE")
    for wrong in ("node-0.key", "none.crt"):
        scene.call("keys", "roster", "h:1=" + scene.path(wrong)).check_refused(wrong)


if __name__ == "__main__":
    run_tests()
