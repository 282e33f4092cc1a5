#!/usr/bin/env python3
"""Lets a pack's programs and libraries run on a glibc as old as Ubuntu 22.04's; tools/gpu-check
calls it.

usage: older_glibc.py FOLDER     prints the oldest glibc with which everything in FOLDER runs

Some of Debian 12's libraries ask for version 2.36 only because its arc4random is there. They are
made to ask for the oldest version; libarc4random.so of the pack has the functions, and is to be
preloaded.
"""

import os
import re
import struct
import subprocess
import sys

OLDEST = (2, 35)
OURS = {"arc4random", "arc4random_buf"}  # tools/arc4random.c
NEEDS, FIRST = 0x6FFFFFFE, b"GLIBC_2.2.5"  # SHT_GNU_verneed; what every library asks for
NEEDED = re.compile(r"\*UND\*.*\(GLIBC_(\d+)\.(\d+)[.\d]*\)\s+(\w+)$", re.M)


def needed_names(path):
    """{version: names} of those newer than OLDEST."""
    told = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=False)
    found = {}
    for major, minor, name in NEEDED.findall(told.stdout):
        if (int(major), int(minor)) > OLDEST:
            found.setdefault((int(major), int(minor)), set()).add(name)
    return found


def sections_of(elf):
    """(type, offset, size, link) of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    length, count = struct.unpack_from("<HH", elf, 0x3A)
    for at in range(table, table + length * count, length):
        yield struct.unpack_from("<I16xQQI", elf, at + 4)


def versions_of(elf):
    """(version, the place where its hash and name are) of all that are needed."""
    sections = list(sections_of(elf))
    for kind, at, _, link in sections:
        while kind == NEEDS:
            _, count, _, entry, following = struct.unpack_from("<HHIII", elf, at)
            entry += at
            for _ in range(count):
                name, after = struct.unpack_from("<8xII", elf, entry)
                start = sections[link][1] + name
                yield bytes(elf[start : elf.index(0, start)]), entry
                entry += after
            if following == 0:
                break
            at += following


def ask_for_first(path, version):
    """In place of this version."""
    with open(path, "rb") as file:
        elf = bytearray(file.read())
    places = dict(versions_of(elf))
    mine, first = places[version], places[FIRST]
    elf[mine : mine + 4] = elf[first : first + 4]
    elf[mine + 8 : mine + 12] = elf[first + 8 : first + 12]
    with open(path, "wb") as file:
        file.write(elf)


def main():
    oldest = OLDEST
    for folder, _, names in os.walk(sys.argv[1]):
        for path in (os.path.join(folder, name) for name in names):
            for version, needed in needed_names(path).items():
                if needed <= OURS:
                    ask_for_first(path, b"GLIBC_%d.%d" % version)
                else:
                    oldest = max(oldest, version)
    print(f"{oldest[0]}.{oldest[1]}")


main()
