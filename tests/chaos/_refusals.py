"""Experiments that have to be refused, without a run folder."""
import os

from _scene import check

SHORT = {"rounds": 4, "record__every": 2}


def refuse_everywhere(scene, *words, commands=("check", "sim", "run"), **changes):
    """The changed experiment is refused, and no run folder appears."""
    path = scene.experiment(**{**SHORT, **changes})
    for command in commands:
        out = () if command == "check" else ("--out", scene.path("out"))
        scene.call(command, path, *out).check_refused(*words)
        check(not os.path.exists(scene.path("out")), "a run folder was left behind")
