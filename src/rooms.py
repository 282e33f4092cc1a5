#!/usr/bin/env python3
"""Gives each room a folder of links to what it may include.

    rooms.py FOLDER PUBLIC OUT ROOM=FLOOR[:HEADER,...] ...

A room is a folder in FOLDER with the headers of PUBLIC/starling that it owns. OUT/ROOM then holds
the headers of the room itself and of all rooms on lower floors, under their usual names, and
nothing else: with it as the only include directory the compiler refuses an upward include. A
room's folder is linked whole, so that new headers are seen at once, unless it has rooms inside.
"""

import os
import shutil
import sys


def link(target, name):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    os.symlink(target, name)


def main():
    source, public, out = (os.path.abspath(path) for path in sys.argv[1:4])
    floors, owned = {}, {}
    for argument in sys.argv[4:]:
        room, _, rest = argument.partition("=")
        floor, _, headers = rest.partition(":")
        floors[room] = int(floor)
        owned[room] = [header for header in headers.split(",") if header]
    shutil.rmtree(out, ignore_errors=True)
    for room in floors:
        view = os.path.join(out, room.replace("/", "-"))
        os.makedirs(view)
        for other in floors:
            if other != room and floors[other] >= floors[room]:
                continue
            folder = os.path.join(source, other)
            if not any(inner.startswith(other + "/") for inner in floors):
                link(folder, os.path.join(view, other))
            else:
                for name in os.listdir(folder):
                    if name.endswith(".h"):
                        link(os.path.join(folder, name), os.path.join(view, other, name))
            for header in owned[other]:
                target = os.path.join(public, "starling", header)
                link(target, os.path.join(view, "starling", header))


if __name__ == "__main__":
    main()
