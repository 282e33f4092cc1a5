#!/usr/bin/env python3
"""Debian systems in folders of their own: fresh ones for packages (tests/install/test_package.py),
and one of another release in which Starling is built and tested (tools/test debian13).

What debootstrap makes of a release is kept in build-releases/ and unpacked for each system. Needs
root. Commands run in a system in a mount namespace of their own: nothing stays mounted, however
they end.

usage: releases.py RELEASE     makes build-releases/RELEASE, or brings it up to this tree: with what
                               tools/setup names and a copy of the sources in /starling; ends with
                               77 and a sentence where no such system can be had
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build-releases")
SOURCES = "/starling"
NEEDED = ("--package", "--python")  # of tools/setup
SCRIPT = "/usr/share/debootstrap/scripts/sid"  # all releases' scripts are links to it
UNAVAILABLE = 77
ENTER = """
mount --bind "$0" "$0" || exit
for each in /proc /sys /dev "$1"; do
    mkdir -p "$0$each" && mount --rbind "$each" "$0$each" || exit
done
folder=$2
shift 2
exec chroot "$0" env --unset=CC --chdir="$folder" PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


class Unavailable(Exception):
    """No such system can be had here."""


def entered(system, folder, command):
    """The command as it runs in a folder of the system; both share this one's temporary files.
    The system is mounted onto itself: otherwise it could not enter a system of its own."""
    enter = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", ENTER]
    return [*enter, system, tempfile.gettempdir(), folder, *command]


def call(*command, failure=RuntimeError):
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise failure(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def own_release():
    with open("/etc/os-release") as file:
        return re.search(r"^VERSION_CODENAME=(\w+)", file.read(), re.M)[1]


def mirror():
    """The address of the main archive, as apt has it; it serves all releases."""
    form = "$(REPO_URI) $(CODENAME) $(COMPONENT)"
    text = call("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    rows = [row.split() for row in text.splitlines()]
    found = [row[0] for row in rows if row[1:] == [own_release(), "main"]]
    if not found:
        raise Unavailable("apt has no archive of this release")
    return found[0]


def check_possible():
    if os.geteuid() != 0:
        raise Unavailable("a system of its own needs root")
    for program in ("debootstrap", "unshare", "chroot"):
        if shutil.which(program) is None:
            raise Unavailable(f"no {program} here")
    call("unshare", "--mount", "mount", "--bind", "/proc", "/proc", failure=Unavailable)


def archive_of(release):
    """What debootstrap makes of the release, as a tar file."""
    path = os.path.join(FOLDER, release + ".tar")
    if not os.path.exists(path):
        os.makedirs(FOLDER, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            command = ["debootstrap", "--variant=minbase", "--include=ca-certificates"]
            call(*command, release, folder, mirror(), SCRIPT, failure=Unavailable)
            call("tar", "-C", folder, "-cf", path + ".new", ".")
        os.rename(path + ".new", path)
    return path


def unpack(release, folder):
    """A fresh system of the release in a folder that is not there yet."""
    check_possible()
    archive = archive_of(release)
    os.makedirs(folder)
    call("tar", "-C", folder, "-xf", archive)
    os.chmod(folder, 0o755)  # the archive's own is that of a temporary folder
    share_network(folder)


def share_network(system):
    """How hosts are found, and apt's way out."""
    for path in ("/etc/resolv.conf", "/etc/hosts", *glob.glob("/etc/apt/apt.conf.d/99*")):
        if os.path.exists(path):
            shutil.copy(path, system + path)
    lines = call("apt-config", "dump", "Acquire").splitlines()
    lines = [line for line in lines if re.match(r"Acquire::(https?|ftp)::", line)]
    with open(system + "/etc/apt/apt.conf.d/98proxy", "w") as file:
        file.write("\n".join([*lines, 'Acquire::Retries "3";', ""]))


def system_of(release):
    return os.path.join(FOLDER, release)


def make(release):
    """The system in which this tree is built and tested."""
    check_possible()
    system = system_of(release)
    if not os.path.exists(system):
        shutil.rmtree(system + ".new", ignore_errors=True)
        unpack(release, system + ".new")
        os.rename(system + ".new", system)
    share_network(system)
    call(os.path.join(ROOT, "tools", "sources"), system + SOURCES, "build*")
    for needed in NEEDED:
        call(*entered(system, SOURCES, ["tools/setup", needed]))
    call(*entered(system, "/", ["apt-get", "clean"]))
    lend_archive(release, system)


def lend_archive(release, system):
    """tests/install/test_package.py makes a fresh system of its own there."""
    lent = os.path.join(system + SOURCES, os.path.basename(FOLDER), release + ".tar")
    if not os.path.exists(lent):
        os.makedirs(os.path.dirname(lent), exist_ok=True)
        os.link(archive_of(release), lent)


def main():
    if len(sys.argv) != 2 or not re.fullmatch(r"[a-z]+", sys.argv[1]):
        print(__doc__)
        return 2
    try:
        make(sys.argv[1])
    except Unavailable as why:
        print(f"no {sys.argv[1]} here: {why}")
        return UNAVAILABLE
    except RuntimeError as problem:
        print(problem)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
