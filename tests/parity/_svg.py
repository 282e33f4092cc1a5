"""Reads what a figure of matplotlib shows back out of its SVG, in the data's own units."""
import math
import re
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(element):
    return ["".join(text.itertext()).strip() for text in element.iter(SVG + "text")]


def path_points(text):
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", text)]


def bounds(element):
    """(left, top, right, bottom) of the paths in it."""
    points = [p for path in element.iter(SVG + "path") for p in path_points(path.get("d"))]
    xs, ys = zip(*points)
    return min(xs), min(ys), max(xs), max(ys)


class Panel:
    """One axes of a figure. Its scales are found from its ticks."""

    def __init__(self, element):
        self.element = element
        self.xs, self.ys = ([], [])
        for group in element.iter(SVG + "g"):
            name = group.get("id") or ""
            if name.startswith(("xtick_", "ytick_")):
                mark = next(group.iter(SVG + "use"), None)
                label = (texts_of(group) or [""])[0].replace("\N{MINUS SIGN}", "-")
                if mark is not None and label:
                    which = "x" if name[0] == "x" else "y"
                    (self.xs if which == "x" else self.ys).append((label, float(mark.get(which))))

    def labels(self, which):
        return [label for label, _ in (self.xs if which == "x" else self.ys)]

    def place(self, which, value, log=False):
        """Where a value stands, in points of the page."""
        ticks = [(float(t), at) for t, at in (self.xs if which == "x" else self.ys) if t != "0"]
        (a, at_a), (b, at_b) = ticks[0], ticks[-1]
        turn = math.log if log else float
        return at_a + (turn(value) - turn(a)) / (turn(b) - turn(a)) * (at_b - at_a)

    def _children(self, prefix):
        return [g for g in self.element if (g.get("id") or "").startswith(prefix)]

    def lines(self, prefix="line2d_"):
        """[points] of the drawn lines, or marks where these are not joined."""
        found = []
        for group in self._children(prefix):
            path, marks = group.find(SVG + "path"), group.iter(SVG + "use")
            alone = [(float(mark.get("x")), float(mark.get("y"))) for mark in marks]
            found.append(alone if path is None else path_points(path.get("d")))
        return found

    def bands(self):
        """[points of the outline]"""
        found = []
        for group in self._children(("PolyCollection_", "FillBetweenPolyCollection_")):
            shift = float(next(group.iter(SVG + "use")).get("y"))
            points = path_points(next(group.iter(SVG + "path")).get("d"))
            found.append([(x, y + shift) for x, y in points])
        return found

    def error_bars(self):
        """[((x, y), (x, y))]"""
        groups = self._children("LineCollection_")
        return [tuple(path_points(g.find(SVG + "path").get("d"))) for g in groups]

    def boxes(self):
        """[(left, top, right, bottom)] of the bars."""
        groups = self._children("patch_")
        return [bounds(g) for g in groups if g.find(SVG + "path").get("clip-path")]


class Picture:
    def __init__(self, path):
        self.root = tree.parse(path).getroot()
        self.texts = texts_of(self.root)
        groups = [g for g in self.root.iter(SVG + "g") if g.get("id")]
        self.named = {g.get("id"): g for g in groups}
        self.panels = [Panel(g) for g in groups if re.fullmatch(r"axes_\d+", g.get("id"))]

    def legend(self):
        return texts_of(self.named["legend_1"]) if "legend_1" in self.named else []

    def legend_top(self):
        return bounds(self.named["legend_1"])[1]
