#!/usr/bin/env python3
"""starling@.service under a real systemd, which is the first process of namespaces of its own:
what it is told, as systemctl shows it, and what it does."""
import json
import os
import re
import shutil
import signal
import subprocess

from _install import ROOT, check, needs, run_tests
from _scene import EXPERIMENT, wait_until

FILES = os.path.join(ROOT, "examples", "services")
SYSTEMD = "/lib/systemd/systemd"
# Processes, mounts, network and control group end with it; what it writes is in memory.
BOOT = """set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1/memory"
cd "$1/memory"
mkdir group up work root
mount -t cgroup2 cgroup2 group
mine=group/starling-test-$$
mkdir $mine
trap 'sleep 0.2; find $mine -depth -type d -exec rmdir {} +' EXIT
(
    sh -c 'echo $PPID' >$mine/cgroup.procs
    unshare -Cpfmuin --kill-child sh -ec '
        mount -t overlay -o lowerdir=/,upperdir=up,workdir=work overlay root
        cp -r ../files/. root
        cd root
        mount -t proc proc proc
        mount --rbind /dev dev
        mount -t sysfs sysfs sys
        mount -t cgroup2 cgroup2 sys/fs/cgroup
        mount -t tmpfs tmpfs run
        mkdir before
        pivot_root . before
        umount -l /before
        systemd-sysusers /units/starling.sysusers 2>/dev/null
        systemd-tmpfiles --create /units/starling.tmpfiles
        exec env -i PATH=/usr/sbin:/usr/bin container=test SYSTEMD_UNIT_PATH=/units \\
            """ + SYSTEMD + """ --log-target=null --unit=basic.target'
)
"""
TARGETS = ("sysinit", "basic", "network-online", "shutdown")
SOON = "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\nRestartSec=0\n"
ENVIRONMENT = "STARLING_RANK={}\nSTARLING_ROSTER=127.0.0.1:7000,127.0.0.1:7001\n"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def lay_out(scene, files):
    """What the system has beside this one's files: the package's, and two runs' folders."""
    os.mkdir(scene.path("memory"))
    for target in TARGETS:
        write(f"{files}/units/{target}.target", "[Unit]\nDefaultDependencies=no\n")
    write(f"{files}/units/starling@.service.d/soon.conf", SOON)
    for name in ("starling@.service", "starling.sysusers", "starling.tmpfiles"):
        shutil.copy(os.path.join(FILES, name), f"{files}/units")
    for folder in ("bin", "lib"):
        os.makedirs(f"{files}/usr/{folder}")
    shutil.copy(scene.starling, f"{files}/usr/bin")
    build = os.path.dirname(os.path.dirname(scene.starling))
    shutil.copy(f"{build}/src/libstarling.so.0", f"{files}/usr/lib")
    experiment = {**EXPERIMENT, "topology": {"nodes": 2, "family": "ring"}}
    experiment["membership"] = {"on_loss": "continue"}
    experiment["checkpoint"] = {"every": 20}
    for rank in (0, 1):
        folder = f"{files}/etc/starling/{rank}"
        write(f"{folder}/experiment.json", json.dumps(experiment))
        write(f"{folder}/agent.env", ENVIRONMENT.format(rank))


class Systemd:
    def __init__(self, scene):
        command = ["unshare", "-m", "sh", "-c", BOOT, "sh", scene.folder]
        self.boot = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.find() or self.boot.poll() is not None, "systemd")
        self.pid = self.find() if self.boot.poll() is None else None

    def __enter__(self):
        return self

    def __exit__(self, *why):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
        self.boot.wait()

    def find(self):
        """The youngest child's child, once it is that."""
        todo = [self.boot.pid]
        try:
            for pid in todo:
                with open(f"/proc/{pid}/task/{pid}/children") as file:
                    todo += map(int, file.read().split())
            with open(f"/proc/{todo[-1]}/comm") as file:
                return todo[-1] if file.read() == "systemd\n" else None
        except OSError:  # one has ended
            return None

    def call(self, *words):
        inside = ["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-i"]
        return subprocess.run([*inside, *words], capture_output=True, text=True)

    def show(self, unit, name):
        return self.call("systemctl", "show", "-P", name, unit).stdout.strip()


def systemd_starts_watches_and_stops_it(scene):
    root = os.geteuid() == 0 and os.path.exists(SYSTEMD)
    needs(root, "systemd is absent, or this is not root")
    mounting = ["unshare", "-m", "mount", "-t", "cgroup2", "x", "/mnt"]
    mounts = subprocess.run(mounting, capture_output=True).returncode == 0
    needs(mounts, "no control groups can be mounted")
    lay_out(scene, scene.path("files"))
    with Systemd(scene) as systemd:
        needs(systemd.pid, "this system lets no other one boot")
        one, other = "starling@0", "starling@1"

        def says(unit, name, pattern):
            wait_until(lambda: re.search(pattern, systemd.show(unit, name)),
                       f"{name} {pattern}")  # fmt: skip

        wait_until(lambda: systemd.call("systemctl", "status").returncode == 0, "it is up")
        started = systemd.call("systemctl", "start", one)  # it waits for READY
        log = systemd.call("cat", "/var/log/starling/0.log")
        status = systemd.call("systemctl", "status", one).stdout
        check(started.returncode == 0, status + log.stdout + log.stderr)
        check(systemd.show(one, "SubState") == "running", systemd.show(one, "SubState"))
        says(one, "StatusText", "^round 0 of ")
        systemd.call("systemctl", "start", other)
        says(one, "StatusText", "^round [1-9]")
        at = systemd.show(one, "WatchdogTimestampMonotonic")
        wait_until(lambda: systemd.show(one, "WatchdogTimestampMonotonic") != at, "the watchdog")
        systemd.call("kill", "-STOP", systemd.show(other, "MainPID"))
        says(other, "NRestarts", "1")
        says(other, "StatusText", "^round [1-9]")
        systemd.call("systemctl", "stop", other, one)
        for unit in (one, other):
            check(systemd.show(unit, "ActiveState") == "inactive", systemd.show(unit, "SubState"))
            check(systemd.show(unit, "Result") == "success", systemd.show(unit, "Result"))


if __name__ == "__main__":
    run_tests()
