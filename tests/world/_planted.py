"""What planted.txt plants: {who has to find it: {name: (source, what stands there, what is planted,
the seed from which it is looked for)}}."""

import os
import re

HEAD = re.compile(r"(.*): (\S+?)(?: from (\d+))?$")


def read(path):
    finders, text = {}, {}
    with open(path) as file:
        for line in file.read().splitlines():
            if line.startswith("= "):
                defects = finders.setdefault(line[2:], {})
            elif line[:1] in ("-", "+"):
                text[line[0]].append(line[1:])
            elif line and not line.startswith("#"):
                name, source, seed = HEAD.fullmatch(line).groups()
                text = {"-": [], "+": []}
                defects[name] = (source, text["-"], text["+"], int(seed or 1))
    return finders


def joined(defect):
    source, before, after, seed = defect
    return source, "\n".join(before), "\n".join(after), seed


FINDERS = {
    finder: {name: joined(defect) for name, defect in defects.items()}
    for finder, defects in read(os.path.join(os.path.dirname(__file__), "planted.txt")).items()
}
