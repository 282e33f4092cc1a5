#!/usr/bin/env python3
"""Holds the sources to the rules of ARCHITECTURE.md and CONTRIBUTING.md that a program can check.

Object files tell what names are defined and used, so Starling has to be built. Prints a line
"ok NAME", "not ok NAME: why" or "skip NAME: why" for each rule.

usage: tidy.py [STARLING]     the command in its build folder; default build/tools/starling
"""

import ast
import functools
import glob
import graphlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS, FILE_LINES, FUNCTION_LINES = 100, 600, 60
EVERYTHING = "include/starling/starling.h"  # includes all public headers
LISTED = 12  # findings shown of one rule
LONG = "tests/reference/algorithms.py"  # each formula behind the other
# Globals that change, each with its reason.
MUTABLE = {
    "src/base/kernels.c: sl_kernels_level": "set once, before main()",
    "src/secure/cipher_ipsec_mb.c: manager": "set once, before the first seal",
    "src/secure/cipher_ipsec_mb.c: once": "that it is once",
    "src/provider/libfabric.c: real": "set once, when the core of a wheel opens libfabric",
    "src/provider/libfabric.c: once": "that it is once",
    "src/world/loop.c: said": "of a thread, for the error that follows",
}
FOREIGN = {
    "src/provider/libfabric.c": "fi_"
}  # functions with the names of the library they stand for
# What the library leaves to its caller: to print and to end the program. assert() may.
FORBIDDEN = {
    *("exit", "_exit", "_Exit", "quick_exit", "abort", "stdout", "stderr"),
    *("printf", "__printf_chk", "puts", "putchar", "perror", "vprintf", "err", "warn"),
}


class Skipped(Exception):
    """The text is why."""


def output(*command):
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, errors="replace"
    ).stdout


def complaints(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stderr


def read(path):
    with open(os.path.join(ROOT, path), errors="replace") as file:
        return file.read()


class Sources:
    """The tracked files by kind, and the objects of a build."""

    def __init__(self, build):
        self.build = build
        files = [path for path in output("git", "ls-files").split() if self.is_file(path)]
        self.c = [path for path in files if path.endswith((".c", ".h", ".cu"))]
        self.meson = [path for path in files if os.path.basename(path).startswith("meson")]
        self.markdown = [path for path in files if path.endswith(".md")]
        scripts = [path for path in files if "." not in os.path.basename(path)]
        heads = {path: read(path).split("\n", 1)[0] for path in scripts}
        self.python = [path for path in files if path.endswith(".py")]
        self.python += [path for path in scripts if re.match("#!.*python", heads[path])]
        self.shell = [path for path in files if path.endswith(".sh")]
        self.shell += [path for path in scripts if re.match("#!.*sh$", heads[path])]
        self.public = [path for path in self.c if path.startswith("include/")]
        self.rooms = read_rooms()
        self.owners = read_owners()

    @staticmethod
    def is_file(path):
        path = os.path.join(ROOT, path)
        return os.path.isfile(path) and not os.path.islink(path)

    def room_of(self, path):
        """The room of a file of src/ or of a public header, or None."""
        if path.startswith("include/starling/"):
            return self.owners.get(os.path.basename(path))
        folder = os.path.dirname(path).removeprefix("src/")
        while path.startswith("src/") and folder:
            if folder in self.rooms:
                return folder
            folder = os.path.dirname(folder)
        return None

    def objects(self, folder):
        """[(source, object)] of a folder's libraries and programs."""
        found = []
        pattern = os.path.join(self.build, folder, "**", "*.c.o")
        for path in sorted(glob.glob(pattern, recursive=True)):
            place = os.path.relpath(os.path.dirname(os.path.dirname(path)), self.build)
            name = os.path.basename(path).removesuffix(".o")
            names = (f"{place}/{name}", f"{place}/{name.replace('_', '/', 1)}")
            source = next((name for name in names if name in self.c), None)
            if source is not None:
                found.append((source, path))
        if not found:
            raise Skipped(f"no objects in {self.build}/{folder}: build Starling first")
        return found

    @functools.cache
    def symbols(self, folder):
        """[(source, kind, name)] as nm tells them of a folder's objects."""
        objects = {path: source for source, path in self.objects(folder)}
        rows = []
        for line in output("nm", "--print-file-name", *objects).splitlines():
            path, rest = line.rsplit(":", 1)
            rows.append((objects[path], *rest.split()[-2:]))
        return rows


# ---- floors ----


def read_rooms():
    """{room: floor} of src/meson.build."""
    text = re.search(r"^floors = \{(.*?)^\}", read("src/meson.build"), re.S | re.M).group(1)
    return {room: int(floor) for room, floor in re.findall(r"'([\w/]+)':\s*(\d+)", text)}


def read_owners():
    """{public header: room} of src/meson.build."""
    text = re.search(r"^headers = \{(.*?)^\}", read("src/meson.build"), re.S | re.M).group(1)
    rows = re.findall(r"'([\w/]+)':\s*((?:'[^']*'\s*\+?\s*)+)", text)
    return {
        header: room
        for room, names in rows
        for header in re.findall(r"[\w.]+\.h", names.replace("' + '", ""))
    }


def table_of_floors():
    """{room: floor} of ARCHITECTURE.md: the table with the columns floor and room."""
    rooms, columns = {}, None
    for line in read("ARCHITECTURE.md").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            columns = None
        elif "floor" in cells and "room" in cells:
            columns = cells.index("floor"), cells.index("room")
        elif columns and cells[columns[0]].isdigit():
            for room in re.findall(r"`src/([\w/]+?)/?`", cells[columns[1]]):
                rooms[room] = int(cells[columns[0]])
    return rooms


def floor_table(sources):
    """ARCHITECTURE.md has the floors of src/meson.build"""
    told = table_of_floors()
    for room in sorted(set(told) | set(sources.rooms)):
        if told.get(room) != sources.rooms.get(room):
            yield f"{room}: {told.get(room)} there, {sources.rooms.get(room)} in src/meson.build"


def folders_told(sources):
    """ARCHITECTURE.md's map has the folders of src/"""
    told = re.findall(r"^(?:\| \d+ \||-) `(src/[\w/]+)/`", read("ARCHITECTURE.md"), re.M)
    found = {os.path.dirname(path) for path in sources.c if path.startswith("src/")}
    yield from (f"{folder}: in one of both only" for folder in sorted(set(told) ^ found))


def included(sources, path):
    """The tracked files that one includes."""
    for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', read(path), re.M):
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        for place in (beside, f"src/{name}", f"include/{name}", name, f"tools/{name}"):
            if place in sources.c:
                yield place
                break


def includes_point_down(sources):
    """a room includes itself and lower floors only"""
    for path in sources.c:
        room = sources.room_of(path)
        if path == EVERYTHING:
            continue
        if path.startswith(("src/", "include/starling/")) and room is None:
            yield f"{path}: in no room of src/meson.build"
            continue
        for other in included(sources, path) if room else ():
            below = sources.room_of(other)
            if below is None:
                yield f"{path} includes {other}, which is in no room"
            elif below != room and sources.rooms[below] >= sources.rooms[room]:
                yield f"{path} includes {other}, of a room that is not below"


def command_is_public(sources):
    """tools/ includes public headers only, and nothing includes tools/ or gpu/ but themselves"""
    for path in sources.c:
        for other in included(sources, path):
            if path.startswith("tools/") and other.startswith(("src/", "gpu/")):
                yield f"{path} includes {other}"
            if path.startswith(("src/", "include/")) and other.startswith(("tools/", "gpu/")):
                yield f"{path} includes {other}"


# ---- circles ----


def circle(graph):
    """Nodes that reach each other, if there are any: a line."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as found:
        yield " <-> ".join(found.args[1])


def uses(sources, folder):
    """{source: sources whose functions or tables it uses}."""
    defined, wanted = {}, {}
    for source, kind, name in sources.symbols(folder):
        if kind == "U":
            wanted.setdefault(source, set()).add(name)
        elif kind.isupper():
            defined.setdefault(name, set()).add(source)  # a second one stands in for the first
    return {
        source: set().union(*(defined.get(name, ()) for name in names)) - {source}
        for source, names in wanted.items()
    }


def no_circle_of_files(sources):
    """no circle of sources that use each other's functions"""
    for folder in ("src", "tools"):
        yield from circle(uses(sources, folder))


def no_circle_of_headers(sources):
    """no circle of headers"""
    headers = [path for path in sources.c if path.endswith(".h")]
    graph = {path: set(included(sources, path)) - {path} for path in headers}
    yield from circle(graph)


def no_circle_of_folders(sources):
    """no circle of folders in src/"""
    graph = {}
    for source, others in uses(sources, "src").items():
        folder = os.path.dirname(source)
        for other in map(os.path.dirname, others):
            if other != folder:
                graph.setdefault(folder, set()).add(other)
    yield from circle(graph)


# ---- names ----


def library_names(sources):
    """what is not static in the library begins with sl_"""
    for source, kind, name in sources.symbols("src"):
        begins = ("sl_", "__odr_asan", FOREIGN.get(source, "sl_"))
        if kind.isupper() and kind != "U" and not name.startswith(begins):
            yield f"{source}: {name}"


def library_is_quiet(sources):
    """the library neither prints nor exits"""
    for source, kind, name in sources.symbols("src"):
        if kind == "U" and name in FORBIDDEN:
            yield f"{source} uses {name}"


def no_mutable_globals(sources):
    """the library has no mutable globals"""
    objects = {path: source for source, path in sources.objects("src")}
    source = None
    for line in output("objdump", "--syms", *objects).splitlines():
        source = objects.get(line.split(": ")[0], source)
        match = re.match(r"^[0-9a-f]+ .{6}O (\S+)\s+[0-9a-f]+ .*?([\w.]+)$", line)
        if match and re.match(r"[.]t?(data|bss)(?![.]rel[.]ro)", match.group(1)):
            name = f"{source}: {re.sub('[.][0-9]+$', '', match.group(2))}"
            if name not in MUTABLE and not re.search("asan|gcov", name):
                yield name


# ---- shape ----


def line_length(sources):
    """at most 100 columns"""
    for path in sources.c + sources.python + sources.meson + sources.shell + sources.markdown:
        for number, line in enumerate(read(path).splitlines(), 1):
            table = path.endswith(".md") and line.lstrip().startswith("|")
            if len(re.sub(r"\S*https?://\S+", "", line)) > COLUMNS and not table:
                yield f"{path}:{number}: {len(line)} columns"


def file_length(sources):
    """at most 600 lines a file"""
    for path in sources.c + sources.python + sources.shell:
        lines = read(path).count("\n")
        if lines > FILE_LINES and path != LONG:
            yield f"{path}: {lines} lines"


def functions_of(path):
    """[(name, lines)] of a C file as clang-format leaves it."""
    head, began = None, None
    for number, line in enumerate(read(path).splitlines(), 1):
        match = re.match(r"^(?:START_TEST\((\w+)|[A-Za-z_].*?\b(\w+)\()", line)
        if match:
            head = number, match.group(1) or match.group(2)
        if (
            line.endswith("{")
            and head
            and began is None
            and not line.startswith(("struct", "enum"))
        ):
            began = head
        if line.startswith("}"):
            if began:
                yield began[1], number - began[0] + 1
            head = began = None


def function_length(sources):
    """at most 60 lines a function"""
    for path in sources.c:
        for name, lines in functions_of(path):
            if lines > FUNCTION_LINES:
                yield f"{path}: {name} has {lines} lines"


def c_format(sources):
    """clang-format changes nothing"""
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if program is None or " 14." not in output(program, "--version"):
        raise Skipped("no clang-format 14 here")
    found = complaints(program, "--dry-run", *sources.c)
    places = re.findall(r"^(\S+?):(\d+):\d+: warning", found, re.M)
    yield from sorted({path for path, _ in places})


def python_format(sources):
    """black changes nothing"""
    program = shutil.which("black")
    if program is None:
        raise Skipped("no black here")
    found = complaints(program, "--check", "-l", str(COLUMNS), *sources.python)
    yield from (os.path.relpath(path, ROOT) for path in re.findall(r"would reformat (\S+)", found))


def python_compiles(sources):
    """Python files compile"""
    for path in sources.python:
        try:
            ast.parse(read(path), path)
        except SyntaxError as problem:
            yield f"{path}: {problem}"


# ---- rules of CONTRIBUTING.md ----


def file_heads(sources):
    """the head of a C file says what it is"""
    for path in sources.c:
        name = os.path.basename(path)
        if not read(path).startswith(f"/* {name} - "):
            yield f'{path} does not begin with "/* {name} - "'


def header_guards(sources):
    """a header has a guard, a public one extern "C" too"""
    for path in sources.c:
        text = read(path)
        if path.endswith(".h") and not re.search(r"^#ifndef (\w+)\n#define \1$", text, re.M):
            yield f"{path}: no guard"
        if path in sources.public and "#define SL_API" not in text:
            if "(" in re.sub(r"/\*.*?\*/", "", text, flags=re.S) and 'extern "C"' not in text:
                yield f'{path}: no extern "C"'


def switches_without_default(sources):
    """a switch over an enum has no default"""
    for path in sources.c:
        if not path.startswith(("src/", "gpu/", "tools/")):
            continue
        for match in re.finditer(r"^( *)switch \(.*?^\1\}", read(path), re.M | re.S):
            cases = re.findall(r"^\s*case ([^:]+):", match.group(), re.M)
            if "default:" in match.group() and all(re.match("[A-Z]", case) for case in cases):
                yield f"{path}: switch with {', '.join(cases[:3])}"


def versions(sources):
    """meson.build, the command, CHANGELOG.md and README.md say one version"""
    version = re.search(r"^\s*version: '([\d.]+)'", read("meson.build"), re.M).group(1)
    command = os.path.join(sources.build, "tools", "starling")
    found = {
        "starling --version": output(command, "--version") if os.path.exists(command) else version,
        "CHANGELOG.md": "".join(re.findall(r"^## .*", read("CHANGELOG.md"), re.M)[:2]),
        "README.md": read("README.md"),
    }
    for place, text in found.items():
        if version not in text:
            yield f"{place} does not say {version}"


def protocol_page(sources):
    """docs/protocol.md has the version, frames and messages of the sources"""
    page = read(os.path.join("docs", "protocol.md"))
    version = re.search(r"SL_PROTOCOL_VERSION (\d+)", read("include/starling/version.h")).group(1)
    if f"Version {version}." not in page:
        yield f"it does not say Version {version}."
    for what, header, prefix in (
        ("frame", "src/wire/frame.h", "sl_frame_"),
        ("message", "src/membership/membership.h", "sl_membership_"),
    ):
        body = re.search(r"typedef enum %stype {(.*?)\n}" % prefix, read(header), re.S).group(1)
        code = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        names = re.findall(r"\b%s([A-Z]+)\b" % prefix.upper(), code)
        table = page.split(f"| {what} |")[1].split("\n\n")[0]
        rows = re.findall(r"^\| ([A-Z]+) \|", table, re.M)
        yield from (f"{what} {name} is in one of both only" for name in set(rows) ^ set(names))


def planted_texts(sources):
    """what a planted defect replaces stands once in its source"""
    sys.path.insert(0, os.path.join(ROOT, "tests", "world"))
    import _planted

    for defects in _planted.FINDERS.values():
        for name, (path, before, *_) in defects.items():
            times = read(path).count(before)
            if times != 1:
                yield f"{name}: {path} has it {times} times: {before}"


def listings_of_sources(sources):
    """what docs/your-algorithm.md lists stands in the sources"""
    code = "\n".join(read(path) for path in sources.c if path.startswith("src/"))
    for listing in re.findall(r"```c\n(.*?)```", read("docs/your-algorithm.md"), re.S):
        for piece in re.split(r"^\.\.\.\n", listing, flags=re.M):
            if piece not in code:
                yield f"it does not: {piece[:60]!r}"


RULES = [
    *(floor_table, folders_told, includes_point_down, command_is_public),
    *(no_circle_of_files, no_circle_of_headers, no_circle_of_folders),
    *(library_names, library_is_quiet, no_mutable_globals),
    *(line_length, file_length, function_length, c_format, python_format, python_compiles),
    *(file_heads, header_guards, switches_without_default, versions),
    *(protocol_page, planted_texts, listings_of_sources),
]


def check(rule, sources):
    """The rule's line."""
    name = rule.__doc__
    try:
        found = list(rule(sources))
    except Skipped as why:
        return f"skip {name}: {why}"
    if not found:
        return f"ok {name}"
    rest = f"\n    and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return f"not ok {name}: {len(found)}\n    " + "\n    ".join(found[:LISTED]) + rest


def main():
    default = os.path.join(ROOT, "build", "tools", "starling")
    command = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else default)
    sources = Sources(os.path.dirname(os.path.dirname(command)))
    lines = [check(rule, sources) for rule in RULES]
    print("\n".join(lines))
    return 1 if any(line.startswith("not ok") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
