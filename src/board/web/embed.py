#!/usr/bin/env python3
"""Writes the page as C: each of its files gzipped, as it is sent.

usage: embed.py OUT.c FOLDER

Scripts and styles lose comments and blanks first, and a library its long names, so that it can
stand in the tree as it was published and still be a small page. Its notice of copyright stays.
"""

import gzip
import itertools
import os
import re
import string
import sys

SCRIPTS = ["uplot/uPlot.iife.js", "base.js", "network.js", "curves.js", "strip.js", "tables.js"]
FILES = {
    "page_html": ["page.html"],
    "page_css": ["uplot/uPlot.css", "page.css"],
    "page_js": [*SCRIPTS, "main.js"],
    "icon_svg": ["icon.svg"],
}
# What uPlot can do and the page has no use for: parts of charts; other lines, and joined tables.
UNUSED = r"\.u-(?:legend|inline|series|title|marker)"
UNUSED_FUNCTIONS = (
    "stepped|bars|splineInterp|monotoneCubic|_monotoneCubic|"
    "join|nullExpand|sortCols|allHeadersSame|isAsc|tzDate"
)
# Comments, texts, regular expressions (which stand only behind these characters), blanks, words.
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`"""
    r"""|(?<=[(,=:\[!&|?{};\n])\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/[a-z]*"""
    r"""|\s+|[\w$]+|.""",
    re.S,
)


def tokens(script):
    """Those that count, and between them "\\n" or " " where there was a blank."""
    blank = ""
    for token in TOKEN.findall(script):
        if token.isspace() or token.startswith(("//", "/*")):
            blank = "\n" if "\n" in token + blank else " "
            continue
        yield from filter(None, [blank, token])
        blank = ""


def prune(script):
    """Without those functions, which begin and end at one tab, and the names they are given."""
    script = re.sub(rf"\n\tfunction (?:{UNUSED_FUNCTIONS})\(.*?\n\t\}}\n", "\n", script, flags=re.S)
    return re.sub(rf"\n\t\t\S[^\n]* = (?:{UNUSED_FUNCTIONS})\)?;(?=\n)", "", script)


WORD = re.compile(r"[A-Za-z_$][\w$]*$")


def brackets(solid):
    """Where each opening one is closed, and in which one each token stands."""
    closed, inside, opened = {}, [], [-1]
    for i, token in enumerate(solid):
        if token in {")", "]", "}"}:
            closed[opened.pop()] = i
        inside.append(opened[-1])
        if token in {"(", "[", "{"}:
            opened.append(i)
    return closed, inside


def declared(solid, closed, inside):
    """Names that the script gives to variables, functions and parameters."""
    for i, (before, token, after) in enumerate(zip(["", *solid], solid, [*solid[1:], ""])):
        if before in {"function", "const", "let", "var"} or (after == "=" and solid[i + 2] == ">"):
            yield token
        elif before in {"(", ","} and (at := inside[i]) >= 0 and solid[at] == "(":
            end = closed[at]
            if "function" in solid[max(0, at - 2) : at] or solid[end + 1 : end + 3] == ["=", ">"]:
                yield token


def shorten(found):
    """The same tokens with short names. Each name has one new one everywhere, which nothing else is
    called, so no two can meet. Properties keep theirs, and so does what may be both at once: of
    {name}, of a method, in a text with ${name}."""
    places = [i for i, token in enumerate(found) if not token.isspace()]
    solid = [found[i] for i in places]
    closed, inside = brackets(solid)
    kept, at = set(), {}
    for i, token in enumerate(solid):
        if token[0] == "`":
            kept.update(re.findall(r"[\w$]+", token))
        if not WORD.match(token):
            continue
        before, after = solid[i - 1], solid[i + 1]
        is_key = before in {"{", ","} and after == ":"
        if is_key or (before == "." and solid[i - 2] != "."):
            continue
        both = before in {"{", ","} and after in {",", "}"} and solid[inside[i]] == "{"
        method = after == "(" and before != "function" and solid[closed[i + 1] + 1] == "{"
        if both or method:
            kept.add(token)
        at.setdefault(token, []).append(i)
    lengths = (itertools.product(string.ascii_letters, repeat=n) for n in (1, 2))
    new = ("".join(letters) for letters in itertools.chain.from_iterable(lengths))
    free = (name for name in new if name not in {*solid, "do", "if", "in"})
    names = set(filter(WORD.match, declared(solid, closed, inside))) - kept - {"uPlot"}
    for name in sorted(names, key=lambda name: (-len(at[name]), name)):
        if len(name) > 2 and (short := next(free)):
            for i in at[name]:
                found[places[i]] = short


def pack_script(script):
    script = prune(script)
    notice = re.match(r"/\*\*?[^/]*Copyright.*?\*/\n", script, re.S)
    kept = [notice.group() if notice else ""]
    found = list(tokens(script))
    if notice:
        shorten(found)
    for before, token, after in zip(["\n", *found], found, [*found[1:], "\n"]):
        both_words = re.match(r"[\w$]{2}$", before[-1] + after[0])
        if token == " " and not both_words and not (before[-1] == after[0] and after in "+-"):
            continue
        if token == "\n" and (before[-1] in "{;,([\n" or after[0] in "})].?:"):
            continue
        kept.append(token)
    return "".join(kept) + "\n"


def pack_style(style):
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.S)
    style = re.sub(rf"[^{{}}]*{UNUSED}[^{{}}]*\{{[^{{}}]*\}}", "", style)
    return re.sub(r"\s*([{};,>])\s*", r"\1", re.sub(r"\s+", " ", style)).strip() + "\n"


def content(folder, names):
    pack = {".js": pack_script, ".css": pack_style}.get(os.path.splitext(names[0])[1], str)
    texts = [open(os.path.join(folder, name), encoding="utf-8").read() for name in names]
    return "".join(map(pack, texts)).encode()


def main():
    out, folder = sys.argv[1:]
    lines = ['/* Made by web/embed.py. */\n#include "board/embedded.h"\n']
    for name, parts in FILES.items():
        raw = content(folder, parts)
        packed = gzip.compress(raw, 9, mtime=0)
        numbers = ",".join(map(str, packed))
        rows = "\n".join(re.findall(r".{1,96}(?:,|$)", numbers))
        lines.append(
            f"static const unsigned char {name}[] = {{\n{rows}}};\n"
            f"const sl_embedded sl_{name} = {{{name}, {len(packed)}, {len(raw)}}};\n"
        )
    with open(out, "w", encoding="ascii") as file:
        file.write("\n".join(lines))


main()
