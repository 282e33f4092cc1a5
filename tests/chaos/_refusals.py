"""Experiments that have to be refused, without a run folder."""
import os

from _scene import check

SHORT = {"rounds": 4, "record__every": 2}


def refuse(scene, *words, command="run", **changes):
    """The changed experiment is refused, and no run folder appears."""
    path = scene.experiment(**{**SHORT, **changes})
    ended = (
        scene.call(command, path, "--out", scene.path("out"))
        if command != "check"
        else scene.call("check", path)
    )
    ended.check_refused(*words)
    check(not os.path.exists(scene.path("out")), "a run folder was left behind")


def refuse_everywhere(scene, *words, **changes):
    for command in ("check", "sim", "run"):
        refuse(scene, *words, command=command, **changes)
