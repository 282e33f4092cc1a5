#!/usr/bin/env python3
"""Every command in README.md, CONTRIBUTING.md and docs/ is one that there is, and runs as printed.

A command stands behind `$ ` in a block of code, or is a line of a block that is marked `sh`. All of
them are looked at: programs, subcommands, options, keys, files, targets and tests exist. Then they
run, page by page in a folder of the page's own, with two rounds in place of a long training.

What cannot run so has the reason behind ```sh or ```console, one of NEEDS."""
import functools
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

from _here import ROOT, Failure, check
from _simulate import main

NEEDS = {
    "agents": "looks at agents that run, or stops them",
    "files": "needs files that do not come with Starling, or a run's folder",
    "gpu": "needs a GPU",
    "hosts": "needs several machines, or a launcher",
    "long": "builds, tests or measures",
    "root": "installs",
}
# Programs of the system; what they are called with is not looked at.
SYSTEM = set(
    "apt-get awk bash cat cc cd cmp cp curl diff echo export grep head install jq kill kubectl"
    " ls mkdir mpirun mv openssl podman printf rm rsync sbatch scp sed sort srun ssh systemctl"
    " tail torchrun touch tr true unset wait".split()
)
PREFIXES = set("for in do done if then else fi while sudo time nice".split())
# What a training has in place of its own length.
LIGHT = ["rounds=2", "epochs=0", "record.every=1000000"]


# ---- pages ----


class Block:
    def __init__(self, page, line, kind, need, text):
        self.page, self.line, self.kind, self.need, self.text = page, line, kind, need, text

    def where(self):
        return f"{self.page}:{self.line}"

    def commands(self):
        """(line in the page, command) with what it goes on with in the next lines."""
        lines, at = self.text.split("\n"), 0
        while at < len(lines):
            line, first = lines[at], at
            at += 1
            if self.kind != "sh":
                if not line.startswith("$ "):
                    continue
                line = line[2:]
            elif not line.strip() or line.startswith("#"):
                continue
            while is_open(line) and at < len(lines):
                line += "\n" + lines[at]
                at += 1
            yield self.line + 1 + first, line


def is_open(command):
    """Does it go on in the next line?"""
    if command.endswith("\\"):
        return True
    try:
        words = split(command)
    except ValueError:
        return True  # within quotes
    return words.count("do") > words.count("done")


def split(command):
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def blocks_of(page):
    with open(os.path.join(ROOT, page)) as file:
        text = file.read()
    for block in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        line = text[: block.start()].count("\n") + 1
        kind, _, need = block[1].partition(" ")
        yield Block(page, line, kind, need, block[2])


def pages():
    found = ["README.md", "CONTRIBUTING.md"]
    found += sorted(glob.glob("docs/*.md", root_dir=ROOT))
    return found


# ---- what there is ----


class Known:
    """What the command, the build and the tests know."""

    def __init__(self, starling):
        self.starling = os.path.abspath(starling)
        self.build = os.path.dirname(os.path.dirname(self.starling))
        self.targets = self.introspect("targets")
        self.names = {}
        for target in self.targets:
            kind = target["type"].replace(" ", "_")
            for name in (target["name"], f"{target['name']}:{kind}"):
                self.names[name] = self.names.get(name, 0) + 1
        self.files = {
            os.path.relpath(file, self.build)
            for target in self.targets
            for file in target["filename"]
        }
        tests = self.introspect("tests")
        self.tests = {test["name"] for test in tests}
        self.suites = {suite.split(":")[-1] for test in tests for suite in test["suite"]}
        self.options = {option["name"] for option in self.introspect("buildoptions")}
        self.helps, self.keys = {}, None

    def introspect(self, what):
        with open(os.path.join(self.build, "meson-info", f"intro-{what}.json")) as file:
            return json.load(file)

    def help_of(self, words):
        """The text of `starling WORDS --help`; "" where there is no such command."""
        if words not in self.helps:
            called = subprocess.run(
                [self.starling, *words, "--help"], capture_output=True, text=True, timeout=60
            )
            self.helps[words] = called.stdout if called.returncode == 0 else ""
        return self.helps[words]

    def has_key(self, path):
        if self.keys is None:
            self.keys = set(re.findall(r"^ *([a-z_.0-9]+)(?: |$)", self.help_of(("check",)), re.M))
            self.keys |= {"topology", "faults"}
        if path in self.keys or path.startswith("topology."):
            return True
        return any(key.startswith(f"{path}.") for key in self.keys)


# ---- one command ----


def has_file(path):
    return os.path.exists(os.path.join(ROOT, path))


def check_file(path):
    """One that comes with the sources is there; others are the reader's."""
    if re.match(r"(examples|topologies|tests|tools|docs|src|include)/", path):
        check(has_file(path), f"there is no {path}")


def check_setting(known, setting):
    key, equals, _ = setting.partition("=")
    check(equals, f"--set {setting}: it must be KEY=VALUE")
    check(known.has_key(key), f"there is no key {key}")


def check_starling(known, words):
    path = []
    while words and re.fullmatch(r"[a-z]+", words[0]) and known.help_of((*path, words[0])):
        path.append(words.pop(0))
    check(path or words[:1] in ([], ["--help"], ["--version"]), f"starling has no {words[:1]}")
    text = known.help_of(tuple(path))
    while words:
        word = words.pop(0)
        if word == "--set":
            check_setting(known, words.pop(0))
        elif word.startswith("-") and not re.fullmatch(r"-?[0-9.]+", word):
            name = word.split("=")[0]
            listed = re.search(rf"(^|[\s\[,|]){re.escape(name)}\b", text)
            family = path[:2] == ["topology", "make"]
            check(listed or family, f"starling {' '.join(path)} has no {name}")
        else:
            check_file(word)


def is_optional(target):
    """Is it one that is built where its libraries are, such as Open MPI?"""
    files = glob.glob(os.path.join(ROOT, "tests", "**", "meson.build"), recursive=True)
    return any(f"'{target}'" in open(file).read() for file in files)


def check_meson(known, words):
    verb = words.pop(0)
    for word in words:
        if word.startswith("-D"):
            check(word[2:].split("=")[0] in known.options, f"meson has no option {word}")
        elif word.endswith(".ini"):
            check_file(word)
    rest, name = [], None
    for word in words:
        if not word.startswith("-") and name not in ("-C", "--suite", "--timeout-multiplier"):
            rest.append(word)
        if name == "--suite":
            check(word in known.suites, f"there is no suite {word}")
        name = word
    if verb == "compile":
        for target in rest:
            count = known.names.get(target, 0)
            check(count > 0 or is_optional(target), f"there is no target {target}")
            if count == 0:
                continue
            check(count == 1, f"{count} targets are called {target}: say {target}:executable")
    elif verb == "test":
        for test in rest:
            check(test in known.tests, f"there is no test {test}")
    else:
        check(verb in ("setup", "install"), f"meson {verb}")


def check_ninja(known, words):
    for word in [w for w, before in zip(words, ["", *words]) if before != "-C"]:
        if not word.startswith("-"):
            # Fuzzers are targets of a build of their own.
            source = f"{word}.c"
            check(word in known.files or has_file(source), f"there is no target {word}")


def check_python(words):
    path = words.pop(0)
    if path == "-c":
        return
    check_file(path)
    if not has_file(path):
        return
    folder = os.path.dirname(os.path.join(ROOT, path))
    text = "".join(open(file).read() for file in glob.glob(os.path.join(folder, "*.py")))
    for word in words:
        check_file(word) if "/" in word and not word.startswith("-") else None
        if word.startswith("--"):
            check(f'"{word.split("=")[0]}"' in text, f"{path} knows no {word}")
        elif re.fullmatch(r"[a-z]+(_[a-z0-9]+){2,}", word):
            check(re.search(rf"\b{word}\b", text), f"{path} has no {word}")


def check_tool(path, words):
    check_file(path)
    check(os.access(os.path.join(ROOT, path), os.X_OK), f"{path} cannot be started")
    with open(os.path.join(ROOT, path)) as file:
        text = file.read()
    for word in words:
        if word.startswith("--") and path != "tools/demo":
            check(word.split("=")[0] in text, f"{path} knows no {word}")


def check_simple(known, words):
    """One program with its arguments."""
    while words and (words[0] in PREFIXES or re.fullmatch(r"[A-Za-z_]+=.*", words[0], re.S)):
        if words[0] in ("for", "in"):
            return
        words = words[3:] if words[0] == "nice" else words[1:]
    if not words:
        return
    program = words.pop(0)
    if program in ("mpirun", "srun", "torchrun") and "starling" in words:
        check_starling(known, words[words.index("starling") + 1 :])
    elif os.path.basename(program) == "starling":
        check_starling(known, words)
    elif program in ("meson", "ninja"):
        (check_meson if program == "meson" else check_ninja)(known, words)
    elif os.path.basename(program) == "python3":
        check_python(words)
    elif re.match(r"build[a-z0-9-]*/", program):
        name = program.split("/", 1)[1]
        source = has_file(f"{name}.c")
        check(name in known.files or source, f"the build has no {name}")
    elif program.startswith(("tools/", "examples/")):
        check_tool(program, words)
    else:
        check(program in SYSTEM, f"{program} is no program that is known here")


def check_command(known, command):
    part = []
    command = re.sub(r"\$\(\([^)]*\)\)", "0", re.sub(r"(^|\s)#[^\n]*", "", command))
    for word in [*split(command), ";"]:
        if re.fullmatch(r"[;&|]+", word):
            check_simple(known, part)
            part = []
        elif re.fullmatch(r"[<>()&0-9]+", word) and ("<" in word or ">" in word):
            part.append("\0")  # the file of a redirection follows
        elif part[-1:] == ["\0"]:
            part.pop()
        else:
            part.append(word)


# ---- blocks ----


def is_forgotten(block):
    """A block that looks like commands, and is not marked."""
    first = block.text.split("\n")[0]
    program = (
        r"(starling( [a-z]+)+ [a-z]+[./]|meson |ninja |tools/[a-z]|(/usr/bin/)?python3 |build/)"
    )
    return block.kind == "" and re.match(rf"([A-Z_]+=\S+ )*{program}", first)


def check_block(known, block):
    check(not is_forgotten(block), "commands: put $ before them, or write ```sh above")
    if block.kind in ("", "sh", "console"):
        check(
            not block.need or block.need in NEEDS,
            f"{block.need!r} is no reason not to run; there are {', '.join(NEEDS)}",
        )
        for _, command in block.commands():
            check_command(known, command)


# ---- running them ----

WRAPPER = """#!/bin/bash
# `starling` of a page: a long training has two rounds, of few samples.
case " $* " in
*" --replay "* | *" --resume "* | *" --help "*) ;;
*) case $1 in sim | run | compare) set -- "$@" {light} ;; esac
  case "$1 $2" in "sim examples/"* | "run examples/"* | *" first.json") set -- "$@" {few} ;; esac ;;
esac
exec {starling} "$@"
"""


def prepare(known, folder):
    """A folder as a reader has it: the sources, a build, `starling` in PATH."""
    for name in ("examples", "topologies", "tests", "tools", "docs"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    os.symlink(known.build, os.path.join(folder, "build"))
    programs = os.path.join(folder, ".programs")
    os.mkdir(programs)
    light = " ".join(f"--set {setting}" for setting in LIGHT)
    with open(os.path.join(programs, "starling"), "w") as file:
        few = "--set data.train_samples=1600 --set data.test_samples=100"
        file.write(WRAPPER.format(starling=known.starling, light=light, few=few))
    os.chmod(os.path.join(programs, "starling"), 0o755)
    os.symlink(sys.executable, os.path.join(programs, "python3"))
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "80"}


def shown_below(block, command):
    """What the page shows below the command; of `$ cat NAME` what the reader writes."""
    after = block.text.split(f"{command}\n", 1)
    return re.split(r"^\$ ", after[1], flags=re.M)[0] if len(after) == 2 else ""


def run_command(block, command, folder, environment):
    name = re.fullmatch(r"cat ([\w.-]+)", command)
    if name and not os.path.exists(os.path.join(folder, name[1])):
        with open(os.path.join(folder, name[1]), "w") as file:
            file.write(shown_below(block, command))
        return
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    # what is shown to fail says so
    refused = re.search(r"^starling: ", shown_below(block, command), re.M)
    if not refused:
        check(ended.returncode == 0, f"exit code {ended.returncode}: {ended.stderr[-600:]}")


def run_page(known, page):
    """The blocks that need nothing else, in the order of the page."""
    with tempfile.TemporaryDirectory(prefix="starling-pages-") as folder:
        environment = prepare(known, folder)
        for block in blocks_of(page):
            kind, _, name = block.kind.partition(":")
            if kind == "json" and block.need:
                with open(os.path.join(folder, block.need), "w") as file:
                    file.write(block.text)
            if kind not in ("", "sh", "console") or block.need:
                continue
            for line, command in block.commands():
                try:
                    run_command(block, command, folder, environment)
                except Failure as wrong:
                    raise Failure(f"{page}:{line}: {command}: {wrong}") from None


WRONG = (
    ("", "starling chek examples/digits.json", "starling has no"),
    ("", "starling sim examples/digit.json", "there is no examples/digit.json"),
    ("", "starling sim examples/digits.json --epochs 3", "has no --epochs"),
    ("", "starling sim e.json --set optimizer.lr=1 | grep x", "there is no key optimizer.lr"),
    ("", "cd build && starling sim e.json --set rounds", "it must be KEY=VALUE"),
    ("long", "meson compile -C build gossip_agents starling", "3 targets are called starling"),
    ("long", "meson compile -C build gossip_agent", "there is no target gossip_agent"),
    ("long", "meson test -C build vex", "there is no test vex"),
    ("long", "meson test -C build --suite units", "there is no suite units"),
    ("long", "meson setup build -Dgpu=true", "meson has no option -Dgpu"),
    ("long", "ninja -C build tests/world/faults_world", "there is no target"),
    ("long", "build/tests/world/faults_world 1 2", "the build has no"),
    ("long", "python3 tests/bench/gosip.py", "there is no tests/bench/gosip.py"),
    ("long", "python3 tests/bench/ddp.py --turn 2", "knows no --turn"),
    ("long", "tools/tests unit", "there is no tools/tests"),
    ("long", "tools/setup --test-all", "tools/setup knows no --test-all"),
    ("later", "starling --version", "is no reason not to run"),
    ("", "frobnicate", "no program that is known"),
    ("hosts", "mpirun -n 4 starling agents e.json", "starling has no"),
    (None, "starling sim examples/digits.json", "put $ before them"),
)


def check_the_check(known):
    """A check that cannot fail is none."""
    for need, command, words in WRONG:
        kind = "" if need is None else "sh"
        try:
            check_block(known, Block("page", 1, kind, need or "", f"{command}\n"))
        except Failure as wrong:
            check(words in str(wrong), f"{command}: {wrong}")
        else:
            check(False, f"{command}: is not found to be wrong")
    block = Block("page", 1, "sh", "", "starling sim no.json\n")
    with tempfile.TemporaryDirectory(prefix="starling-pages-") as folder:
        try:
            run_command(block, "starling sim no.json", folder, prepare(known, folder))
        except Failure:
            return
    raise Failure("a command that fails is not noticed")


def check_page(known, page):
    wrong = []
    for block in blocks_of(page):
        try:
            check_block(known, block)
        except Failure as failure:
            wrong.append(f"{block.where()}: {failure}")
    check(not wrong, "; ".join(wrong))
    run_page(known, page)


def all_checks(starling):
    known = Known(starling)
    yield f"{len(WRONG)} wrong commands are found", functools.partial(check_the_check, known)
    for page in pages():
        yield page, functools.partial(check_page, known, page)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 2))
