"""How figures look: colours, sizes, logarithmic axes, the legend, files."""

import math
import os
import re
import textwrap

import matplotlib

from . import Wrong

matplotlib.use("Agg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "starling",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,  # TrueType, whole: what publishers ask for
        "font.size": 8,
        "axes.labelsize": 8,
        "legend.fontsize": 7.5,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "axes.titlesize": 8,
        "figure.titlesize": 9,
        "axes.linewidth": 0.6,
        "grid.linewidth": 0.5,
        "grid.alpha": 0.35,
        "lines.linewidth": 1.2,
        "lines.markersize": 4,
        "hatch.linewidth": 0.5,
        "figure.dpi": 300,
    }
)
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator  # noqa: E402

ENDINGS = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}  # no dates in files
# Okabe and Ito, "Color Universal Design" (2008), without its yellow, which white paper swallows.
# The cycles have no common divisor: 7 colours and 4 dashes tell 28 lines apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "////", "----", "\\\\\\\\", "||||", "xxxx", "++++")  # dots make large files
MARKS = 8  # on a curve
COLUMN_INCHES = {"one": 3.4, "two": 7.0}
PANEL_INCHES = 2.3  # a panel is at least so wide where others stand beside it
TITLE_INCHES = 0.22
BAND_SHARE = 5  # of the least number drawn, that a band may go below it on a logarithmic axis


def line_style(i):
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": DASHES[i % len(DASHES)],
        "marker": MARKERS[i % len(MARKERS)],
    }


def bar_style(i):
    return {
        "facecolor": COLOURS[i % len(COLOURS)],
        "hatch": HATCHES[i % len(HATCHES)],
        "edgecolor": "white",
        "linewidth": 0,
    }


def short_number(value):
    """As people write it, with a minus sign that is one."""
    text = f"{value:.6g}"
    return power_label(value) if "e" in text else text.replace("-", "\N{MINUS SIGN}")


# ---- sheets ----


def make_sheet(panels, size):
    """(figure, axes of the panels); a height that is not told leaves room for the legend later."""
    told = re.fullmatch(r"([\d.]+)x([\d.]+)", size or "")
    if size is None:
        size = "one" if panels == 1 else "two"
    if not told and size not in COLUMN_INCHES:
        raise Wrong(f"--size {size}: must be one, two, or inches such as 5x3")
    width = float(told[1]) if told else COLUMN_INCHES[size]
    if not 1 <= width <= 40 or (told and not 1 <= float(told[2]) <= 40):
        raise Wrong(f"--size {size}: must be 1 to 40 inches")
    across = min(panels, max(1, int(width / PANEL_INCHES)))
    down = math.ceil(panels / across)
    panel = min(2.4, max(1.9, 0.68 * width / across))
    figure, axes = plt.subplots(
        down,
        across,
        figsize=(width, float(told[2]) if told else down * panel),
        layout="constrained",
        squeeze=False,
    )
    for unused in axes.flat[panels:]:
        unused.remove()
    return figure, list(axes.flat[:panels]), told is not None


def add_legend(figure, panels, keeps_height):
    """Below all panels: over none of their data. As many columns as there is room for."""
    shown = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            shown.setdefault(label, handle)
    width, height = figure.get_size_inches()
    if len(shown) < 1:
        return 0
    for columns in range(min(len(shown), 6), 0, -1):
        labels = shown if columns > 1 else [textwrap.fill(n, int(width * 13)) for n in shown]
        legend = figure.legend(
            *(list(shown.values()), labels),
            loc="lower center",
            ncols=columns,
            frameon=False,
            handlelength=2.8,
            columnspacing=1.2,
            borderaxespad=0.1,
        )
        box = legend.get_window_extent(figure.canvas.get_renderer())
        if box.width <= width * figure.dpi or columns == 1:
            break
        legend.remove()
    room = box.height / figure.dpi
    if keeps_height and room > 0.6 * height:
        raise Wrong(f"the legend leaves no room on {height:g} inches: more height, or --only")
    if not keeps_height:
        height += room
        figure.set_size_inches(width, height)
    figure.get_layout_engine().set(rect=(0, room / height, 1, 1 - room / height))


def write_sheet(figure, panels, title, keeps_height, output):
    if title:
        figure.suptitle(title)
        if not keeps_height:
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + TITLE_INCHES)
    add_legend(figure, panels, keeps_height)
    figure.savefig(output, metadata=ENDINGS[os.path.splitext(output)[1].lower()])


# ---- logarithmic axes ----


def log_ticks(low, high):
    """Ticks of a logarithmic axis from `low` to `high`: powers of ten, or where it has fewer than
    three of them such digits times powers of ten, or where even those are few round numbers."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    inside = [n for n in range(first, last + 1) if low <= 10.0**n <= high]
    if len(inside) >= 3:
        step = math.ceil(len(inside) / 6)
        return [10.0**n for n in inside if n % step == 0]
    for digits in ((1, 2, 5), (1, 2, 3, 5, 7)):
        fine = [digit * 10.0**n for n in range(first, last + 1) for digit in digits]
        ticks = [tick for tick in fine if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks
    linear = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [tick for tick in linear if low <= tick <= high]


def tick_labels(ticks):
    """All alike: with powers of ten, if one of them is large or small."""
    if any(tick and not 1e-3 <= tick < 1e5 for tick in ticks):
        return [power_label(tick) for tick in ticks]
    return [short_number(tick) for tick in ticks]


def power_label(value):
    if value == 0:
        return "0"
    head, power = f"{value:.3e}".split("e")
    times = "" if float(head) == 1 else rf"{float(head):g}\times"
    return rf"$\mathdefault{{{times}10^{{{int(power)}}}}}$"


def fix_ticks(axis, ticks, labels=None):
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(labels or tick_labels(ticks)))
    axis.set_minor_locator(FixedLocator([]))


def make_log(axes, which, values):
    """A logarithmic axis ("x" or "y") for such values. Where some are 0, there is a linear piece
    below the least other one: they stand at a tick "0"."""
    axis = getattr(axes, which + "axis")
    set_scale, set_limits = getattr(axes, f"set_{which}scale"), getattr(axes, f"set_{which}lim")
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    if not positive:
        return
    low, high = min(positive), max(positive)
    margin = max((high / low) ** 0.05, 1.05)
    if any(value == 0 for value in values):
        base = 10.0 ** math.floor(math.log10(low))
        set_scale("symlog", linthresh=base, linscale=0.6)
        set_limits(-0.25 * base, high * margin)
        ticks = log_ticks(base, high * margin)
        fix_ticks(axis, [0, *ticks])
    else:
        set_scale("log", nonpositive="mask")
        set_limits(low / margin, high * margin)
        fix_ticks(axis, log_ticks(low / margin, high * margin))


def set_limits(axes, text):
    """`text`: LOW:HIGH."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        low = high = 0
    if not low < high:
        raise Wrong(f"--ylim {text}: must be LOW:HIGH, such as 60:90")
    axes.set_ylim(low, high)
    if axes.get_yscale() == "log" and low > 0:
        fix_ticks(axes.yaxis, log_ticks(low, high))


def axis_values(axes, which):
    """All numbers that lines and points of a panel have; of error bars and bands those that do not
    come so near to 0 that a logarithmic axis would show little else."""
    at = "xy".index(which)
    lines = [line.get_data()[at] for line in axes.get_lines() if line.get_gid() != "guide"]
    values = [float(value) for line in lines for value in line]
    paths = [path for area in axes.collections for path in area.get_paths()]
    ends = [end[at] for path in paths for end in path.vertices]
    least = min((value for value in values if value > 0), default=math.inf)
    return values + [float(end) for end in ends if end >= least / BAND_SHARE]
