#!/usr/bin/env python3
"""`starling top`: a run in a terminal of any size, while an agent is lost, and after its end."""
import os
import re
import signal

from _answers import Answerer
from _ports import free_ports
from _scene import check, run_tests, wait_until
from _terminal import ESCAPE, Terminal

PANELS = ["network", "curves", "edges", "events"]


class Top(Terminal):
    """What `starling top` draws on a terminal of that size."""

    def __init__(self, scene, place, lines, columns):
        super().__init__([scene.starling, "top", place], lines, columns, cwd=scene.folder)

    def screen(self):
        """The last frame that is whole."""
        self.read()
        frames = re.findall(rb"\x1b\[H(.*?)\x1b\[J", self.bytes, re.S)
        return (ESCAPE.sub("", frames[-1].decode()) if frames else "").split("\r\n")

    def fits(self):
        rows = self.screen()
        return len(rows) <= self.lines and all(len(row) <= self.columns for row in rows)


def has(screen, pattern):
    return any(re.search(pattern, row) for row in screen)


def a_loss_is_seen_live_and_the_end_stays(scene):
    scene.take_time()
    ports = free_ports(5)
    path = scene.experiment(
        topology={"nodes": 4, "family": "ring"},
        record={"every": 10},
        membership={"on_loss": "continue", "grace_s": 3},
        monitor={"listen": f"127.0.1.{{rank}}:{ports[4]}"},
    )
    running = scene.start("run", path, "--out", scene.path("run"))
    running.wait_for("round 20/")
    top = Top(scene, scene.path("run"), 50, 100)
    place = Top(scene, f"127.0.1.0:{ports[4]}", 30, 60)
    wait_until(lambda: has(top.screen(), r"4 of 4 nodes; running"), "all are there")
    rows = top.screen()
    check(all(has(rows, rf"^{panel}") for panel in PANELS), rows)
    check(has(rows, r"^ +3  (computes|exchanges) "), rows)
    check(has(rows, r"^loss +[\d.e-]+  [▁-█]+") and has(rows, r"^predicted +\d"), rows)
    check(has(rows, r"^ +3  [-#+. x]*[#.-]") and has(rows, r"^ *\d > \d .*TLS 1.3, key"), rows)
    check(has(rows, r"training begins with round 1"), rows)
    check(top.fits() and place.fits(), rows)
    os.kill(scene.agents()[2], signal.SIGKILL)
    for each in (top, place):
        wait_until(lambda: has(each.screen(), r"^ +2  lost"), "the loss is seen")
    wait_until(lambda: has(top.screen(), r"3 of 4 nodes"), "the view is seen")
    wait_until(lambda: has(top.screen(), r"lost"), "it is an event")
    for lines, columns in ((20, 45), (60, 200)):
        top.resize(lines, columns)
        since = len(top.bytes)

        def is_drawn():
            return top.bytes[since:].count(b"\x1b[J") > 2 or not top.read()

        wait_until(is_drawn, "it is drawn anew")
        check(top.fits(), f"{lines} x {columns}: {top.screen()}")
    place.process.send_signal(signal.SIGINT)
    check(place.read_all()[0] == 0, "Ctrl-C")
    check(b"\x1b[?25h\x1b[?1049l" in place.bytes, "the terminal is as it was")
    running.interrupt().wait(60)
    check(top.read_all()[0] == 0, "it ends with the run")
    seen = scene.call("top", scene.path("run"))
    seen.check_well()
    check("stopped" in seen.out.splitlines()[0] and "\x1b" not in seen.out, seen.out)


STATUS = {
    "rank": 4, "nodes": 8, "members": 7, "doing": "exchanges", "round": 812, "still_s": 4,
    "waits_for": "edge 5->4", "lost": [{"rank": 6, "member": False, "since_s": 41}],
    "neighbours": [
        {"rank": 5, "connected": True, "awaited": True, "protection": "\x1b[2J", "said":
         {"rank": 5, "doing": "computes", "round": 811, "still_s": 5, "ago_s": 0}},
    ],
}  # fmt: skip


def a_lone_agent_says_what_it_knows(scene):
    """Without a run folder, as a session's."""
    seen = scene.call("top", Answerer(STATUS).place)
    seen.check_well()
    rows = seen.out.splitlines()
    check(has(rows[:1], r"round 812; 7 of 8 nodes"), rows)
    for row in (
        r"^ +4  exchanges +812 +4.0 s .* 5$",
        r"^ +5  computes +811",
        r"^ +6  lost .*41.0 s",
        r"^5 > 4 ",
        "curves: in the run folder only",
    ):
        check(has(rows, row), f"{row}: {rows}")
    check("\x1b" not in seen.out and "\\x1b[2J" in seen.out, rows)


def where_there_is_no_run(scene):
    os.mkdir(scene.path("empty"))
    scene.call("top", scene.path("empty")).check_refused("holds no run")
    scene.call("top", f"127.0.0.1:{free_ports(1)[0]}").check_refused("no agent", code=1)


if __name__ == "__main__":
    run_tests()
