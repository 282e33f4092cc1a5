#!/usr/bin/env python3
"""Debian packages: tools/package builds them and lintian finds no error; installed into a fresh
system by debootstrap they run the demo's experiment, simulated and with agents.

Where no fresh system can be had (tools/releases.py) the packages are unpacked into a folder, and a
skip says so. usage: test_package.py STARLING [TEST ...]
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from _install import ROOT, call, check, run_tests
import releases  # of tools/

OUT = os.path.join(ROOT, "build-package")
DEMO = "/usr/share/starling/examples/digits.json"
PEERS = """
import array, starling
pair = {"topology": {"nodes": 2, "family": "complete"}}

def train(rank):
    x = array.array("f", [rank])
    with starling.join(pair, x) as peer:
        peer.mix(x)
    return x[0]

print(starling.simulate(2, train, pair))
"""
NAMES = ["libstarling0", "libstarling-dev", "starling", "python3-starling"]


def packages():
    return {os.path.basename(path).split("_")[0]: path for path in glob.glob(OUT + "/*.deb")}


def test_packages_are_built_and_lintian_finds_no_error(scene):
    said = call(os.path.join(ROOT, "tools", "package"))
    check(not re.search(r"^E: ", said, re.M), said)
    built = packages()
    for name in NAMES:
        check(name in built and "_dbgsym" not in built[name], f"{name}: {sorted(built)}")
    version = call(sys.argv[1], "--version").split()[1]
    for name, path in built.items():
        field = call("dpkg-deb", "-f", path, "Version").strip()
        check(field == version, f"{name}: version {field}, starling says {version}")


def test_what_is_opened_by_name_is_recommended(scene):
    """intel-ipsec-mb, of which neither the package's name nor the library's follows by itself."""
    named = call("dpkg-deb", "-f", packages()["libstarling0"], "Recommends").strip()
    check(os.path.isdir(f"/usr/share/doc/{named}"), f"recommends {named!r}")
    listed = call("dpkg-query", "-L", named)
    check("/libIPSec_MB.so." in listed, listed)


def test_agents_are_services(scene):
    """The unit, its user and folders, and the rotation of logs are installed; the user is made."""
    deb = packages()["starling"]
    listed = call("dpkg-deb", "-c", deb)
    for path in ("/systemd/system/starling@.service", "/sysusers.d/starling.conf",
                 "/tmpfiles.d/starling.conf", "/etc/logrotate.d/starling"):  # fmt: skip
        check(path in listed, f"{path} is not in {listed}")
    check("systemd-sysusers" in call("dpkg-deb", "-I", deb, "postinst"), "no user is made")


def check_run(folder, out, command, *arguments, **options):
    call(*command, *arguments, **options)
    with open(folder + out + "/summary.json") as file:
        summary = json.load(file)
    accuracy = summary["mean_model"]["accuracy"]
    check(accuracy > 0.5, f"{arguments}: {summary}")


def install(folder):
    os.makedirs(folder + "/debs")
    for name in NAMES:
        shutil.copy(packages()[name], folder + "/debs")
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
    call(*releases.entered(folder, "/", [*apt, "update"]))
    debs = ["/debs/" + os.path.basename(packages()[name]) for name in NAMES if "-dev" not in name]
    call(*releases.entered(folder, "/", [*apt, "install", "-y", "--no-install-recommends", *debs]))


def check_python(*command, **options):
    """Two ranks in one process average what they have."""
    said = call(*command, "-c", PEERS, **options)
    check(said == "[0.5, 0.5]\n", said)


def run_in(folder):
    check_python(*releases.entered(folder, "/", ["python3"]))
    starling = releases.entered(folder, "/", ["starling"])
    for driver in ("sim", "run"):
        out = "/root/" + driver
        check_run(
            folder, out, starling, driver, DEMO, "--set", "epochs=1", "--out", out, timeout=300
        )


def run_unpacked(folder, why):
    print(f"skip packages in a fresh system: {why}; unpacked into a folder instead")
    for name in NAMES:
        call("dpkg-deb", "-x", packages()[name], folder)
    library = os.path.dirname(glob.glob(folder + "/usr/lib/*/libstarling.so.0")[0])
    environment = {**os.environ, "LD_LIBRARY_PATH": library}
    starling = [folder + "/usr/bin/starling"]
    out = folder + "/tmp"
    python = glob.glob(folder + "/usr/lib/python3/dist-packages")
    check_python("/usr/bin/python3", env={**environment, "PYTHONPATH": python[0]})
    arguments = ["run", folder + DEMO, "--set", "epochs=1", "--out", out]
    check_run(folder, "/tmp", starling, *arguments, env=environment)


def test_packages_run_in_a_fresh_system(scene):
    check(all(name in packages() for name in NAMES), f"no packages: {sorted(packages())}")
    folder = scene.path("root")
    try:
        releases.unpack(releases.own_release(), folder)
    except releases.Unavailable as why:
        os.makedirs(folder, exist_ok=True)
        run_unpacked(folder, str(why)[-200:].replace("\n", " "))
    else:
        install(folder)
        run_in(folder)


if __name__ == "__main__":
    if os.environ.get("STARLING_QUICK"):
        print("skip packages: built once is enough, without sanitizers")
        sys.exit(0)
    if shutil.which("dpkg-buildpackage") is None:
        print("skip packages: no dpkg-buildpackage here")
        sys.exit(0)
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
