#!/usr/bin/env python3
"""An installed tree, with DESTDIR: the library, its headers and programs that use them, the
command, man pages, completion in real shells, examples."""
import glob
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

from _install import BUILD, call, check, run_tests

PROTOTYPE = re.compile(r"^SL_API [^;(]*?\b(sl_\w+)\(", re.M)


def one(pattern):
    found = glob.glob(os.path.join(TREE, "**", pattern), recursive=True)
    check(len(found) == 1, f"{pattern}: {found}")
    return found[0]


def commands():
    """All commands as lists of words: [], ["run"], ["topology"], ["topology", "make"], ..."""
    found, wanted = [], [[]]
    while wanted:
        words = wanted.pop(0)
        found.append(words)
        text = call(sys.argv[1], *words, "--help")
        for rows in re.findall(r"^commands:\n((?:  .*\n)+)", text, re.M):
            wanted += [words + [name] for name in re.findall(r"^  (\S+)", rows, re.M)]
    return found


def test_library_exports_what_is_public(scene):
    library = one("libstarling.so")
    text = call("nm", "-D", "--defined-only", library)
    exported = {line.split()[-1].split("@")[0] for line in text.splitlines()}
    declared = set()
    for header in glob.glob(os.path.join(TREE, "**", "include", "starling", "*.h"), recursive=True):
        declared |= set(PROTOTYPE.findall(open(header).read()))
    sanitizers = {name for name in exported if name.startswith(("__asan", "__odr_asan"))}
    check(declared and exported - sanitizers == declared, f"{exported - sanitizers ^ declared}")
    dynamic = call("readelf", "-d", library)
    check("soname: [libstarling.so.0]" in dynamic, dynamic)


def pkg_config(*options):
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(one("starling.pc"))}
    return call("pkg-config", *options, "starling", env=environment).split()


def run_example(scene, flags):
    """examples/embed.c, compiled with these flags, learns as its head says, with the experiment
    that is installed beside it. Returns the program."""
    source, experiment = (one(f"share/starling/examples/{n}") for n in ("embed.c", "session.json"))
    listing = json.loads(call("meson", "introspect", BUILD, "--buildoptions", stderr=None))
    sanitize = next(each["value"] for each in listing if each["name"] == "b_sanitize")
    if sanitize != "none":
        flags = [*flags, "-fsanitize=" + sanitize]
    program = scene.path("program")
    call("cc", "-Wall", "-Werror", source, "-o", program, *flags, "-lm")
    folder = os.path.dirname(one("libstarling.so"))
    said = call(program, experiment, "4", env={**os.environ, "LD_LIBRARY_PATH": folder})
    check(said.count("accuracy of the average 0.9") == 4, said)
    return program


def test_program_by_pkg_config(scene):
    run_example(scene, pkg_config("--cflags", "--libs"))
    version = pkg_config("--modversion")
    check(version == [build_version()], version)


def test_program_with_the_archive(scene):
    """The archive in place of libstarling.so; all else is linked as --static says."""
    flags = pkg_config("--cflags", "--static", "--libs")
    # Debian 13 names these, which OpenBLAS and OpenSSL bring, without what links them by name.
    flags = [flag for flag in flags if flag not in ("-lgfortran", "-lzstd")]
    check(flags.count("-lstarling") == 1, flags)
    archive = os.path.join(BUILD, "src", "libstarling.a")
    flags[flags.index("-lstarling")] = archive
    program = run_example(scene, ["-Wl,--undefined=sl_agent_open", *flags])
    needed = call("readelf", "-d", program)
    check("libfabric.so" in needed and "libstarling" not in needed, needed)


def build_version():
    return json.loads(call("meson", "introspect", BUILD, "--projectinfo", stderr=None))["version"]


def test_command_in_a_tree(scene):
    command = one("bin/starling")
    environment = {key: value for key, value in os.environ.items() if key != "STARLING_PLUGIN"}
    folder = os.path.join(os.path.dirname(one("libstarling.so")), "starling")
    plugin = os.path.join(folder, "libstarling-cuda.so")
    there = os.path.exists(plugin)
    if not there:
        os.makedirs(folder, exist_ok=True)
        shutil.copy(glob.glob(os.path.join(BUILD, "gpu", "libstarling-emulated.so"))[0], plugin)
    said = call(command, "devices", env=environment)
    check("no GPU plug-in" not in said, said)
    check(there or "cuda:0" in said, said)
    if not there:
        os.remove(plugin)
    example = one("share/starling/examples/quadratic.json")
    call(command, "run", example, "--out", scene.path("run"), env=environment)
    check(os.path.exists(scene.path("run/summary.json")), os.listdir(scene.path("run")))
    for name in ("topologies/ring-8.json", "plot", "figures/kinds.py", "monitoring/alerts.yml"):
        one("share/starling/" + name)


def test_man_pages(scene):
    if shutil.which("groff") is None:
        print("skip man pages: no groff here")
        return
    for words in commands():
        page = one("man1/" + "-".join(["starling", *words]) + ".1")
        told = scene.path("told")
        with open(told, "w+") as errors:
            said = call("groff", "-ww", "-b", "-man", "-Tutf8", page, stderr=errors)
        check(os.path.getsize(told) == 0, f"{page}: {told}")
        text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", said).replace("\u2010", "-")
        shown = set(re.findall(r"--[a-z][a-z-]*", text.replace("−", "-")))
        asked = call(sys.argv[1], *words, "--help")
        missing = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", asked, re.M)) - shown
        check(not missing, f"{page} lacks {missing}")


def typed(shell, setup, text, wanted):
    """Types into an interactive shell; waits until it shows `wanted`."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", PS1="> ", COLUMNS="400", LINES="50")
        os.chdir(TREE)
        os.execvp(shell[0], shell)
    seen, end = "", time.monotonic() + 30
    os.write(terminal, f"{setup}; echo re''ady\n".encode())
    sent = False
    while time.monotonic() < end and not (sent and wanted in seen):
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536).decode(errors="replace")
            except OSError:
                break
        if not sent and "\nready" in seen.replace("\r", ""):
            sent, seen = True, ""
            os.write(terminal, (text + "\t\t").encode())
    os.write(terminal, b"\x03\x04")
    os.close(terminal)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    check(sent and wanted in seen, f"{shell[0]}: {text!r} gives {seen!r}, without {wanted!r}")


CASES = (
    ("starling topology ana", "analyse"),
    ("starling run x.json --wi", "--wide"),
    ("starling run x.json --set optimizer.mom", "optimizer.momentum="),
    ("starling run x.json --set algorithm.name=exact-d", "name=exact-diffusion"),
    ("starling run x.json --set=model.name=resn", "name=resnet20"),
    ("starling topology make watts", "watts-strogatz"),
    ("starling topology make ring --weights fm", "fmmc"),
)


def test_completion_in_bash(scene):
    script = one("bash-completion/completions/starling")
    for breaks in ("", "COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]/};"):
        for text, wanted in CASES:
            typed(["bash", "--norc", "--noprofile"], f"{breaks} source {script}", text, wanted)


def test_completion_in_zsh(scene):
    if shutil.which("zsh") is None:
        print("skip completion in zsh: no zsh here")
        return
    folder = os.path.dirname(one("site-functions/_starling"))
    setup = f"unsetopt zle_bracketed_paste; fpath=({folder} $fpath); autoload -U compinit; "
    for text, wanted in CASES:
        typed(["zsh", "-f"], setup + "compinit -u -D", text, wanted)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as TREE:
        subprocess.run(
            ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
            env={**os.environ, "DESTDIR": TREE},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
