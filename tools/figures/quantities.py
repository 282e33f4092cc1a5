"""What can be drawn: numbers of recorded rounds, and their statistics over seeds."""

import re
from dataclasses import dataclass

import numpy as np

from . import Wrong

QUALITIES = ("accuracy", "loss", "distance")
COSTS = ("rounds", "MB", "seconds", "seconds:LINK")
PREDICTED = re.compile(r"predicted_s_(.+)_mbit_(.+)_ms")


@dataclass(frozen=True)
class Quantity:
    name: str  # as options have it
    column: str  # of records.csv
    scale: float
    label: str  # of an axis, with its unit

    @property
    def is_cost(self):
        """It grows from round to round: at a point it is that of reaching the target."""
        return self.name not in QUALITIES


KNOWN = {
    "accuracy": Quantity("accuracy", "accuracy", 100, "held-out accuracy (%)"),
    "loss": Quantity("loss", "loss", 1, "held-out loss"),
    "distance": Quantity("distance", "consensus_distance", 1, "consensus distance"),
    "rounds": Quantity("rounds", "round", 1, "rounds"),
    "mb": Quantity("MB", "mb", 1, "MB sent by a node"),
    "seconds": Quantity("seconds", "measured_s", 1, "seconds, measured"),
}


def quantity(text, allowed, option):
    """Of such a name, or Wrong."""
    found = KNOWN.get(text.lower())
    link = re.fullmatch(r"seconds:([\d.]+):([\d.]+)", text)
    if link:
        mbit, ms = (f"{float(part):g}" for part in link.groups())
        speed = f"{float(mbit) / 1000:g} Gbit/s" if float(mbit) >= 1000 else f"{mbit} Mbit/s"
        label = f"seconds at {speed}, {ms} ms"
        found = Quantity(text, f"predicted_s_{mbit}_mbit_{ms}_ms", 1, label)
    kind = "seconds:LINK" if link else found and found.name
    if kind not in allowed:
        links = " (LINK is Mbit/s:ms, as 5:20)" if "seconds:LINK" in allowed else ""
        raise Wrong(f"{option} {text}: must be {', '.join(allowed)}{links}")
    return found


def link_names(columns):
    """The links of such columns, as --x has them."""
    found = [PREDICTED.fullmatch(column) for column in columns]
    return [f"{match[1]}:{match[2]}" for match in found if match]


@dataclass(frozen=True)
class Target:
    quantity: Quantity
    value: float  # in the quantity's unit

    def reached(self, numbers):
        """By round."""
        rises = self.quantity.name == "accuracy"
        return numbers >= self.value if rises else numbers <= self.value


def parse_target(text, first):
    """`text`: X or NAME=X; X alone is one of `first`, or else a loss."""
    name, _, number = text.rpartition("=")
    own = first if first in ("accuracy", "loss") else "loss"
    chosen = quantity(name or own, ("accuracy", "loss"), f"--target {text}:")
    try:
        value = float(number)
    except ValueError:
        raise Wrong(f"--target {text}: must be a number, accuracy=PERCENT or loss=X") from None
    if chosen.name == "accuracy" and not 1 < value <= 100:
        raise Wrong(f"--target {text}: an accuracy is told in per cent, above 1 and up to 100")
    return Target(chosen, value)


# ---- over seeds ----


@dataclass(frozen=True)
class Spread:
    """Numbers or arrays: the middle, and the band's ends; `count` of `total` seeds have one."""

    middle: float
    low: float
    high: float
    count: int
    total: int

    def inverse(self, first):
        """`first` through it."""
        low, middle, high = (
            first / end if end > 0 else np.nan for end in (self.high, self.middle, self.low)
        )
        return Spread(middle, low, high, self.count, self.total)


def spread(values, over):
    """Over the first axis. `over`: "mean": ± the sample standard deviation; "median": to the
    quartiles, between whose neighbours is interpolated as `starling compare` does."""
    values = np.asarray(values, float)
    there = values[~np.isnan(values)] if values.ndim == 1 else values
    if len(there) == 0:
        return Spread(np.nan, np.nan, np.nan, 0, len(values))
    if over == "median":
        low, middle, high = np.percentile(there, (25, 50, 75), axis=0)
    else:
        middle = there.mean(axis=0)
        apart = there.std(axis=0, ddof=1) if len(there) > 1 else 0 * middle
        low, high = middle - apart, middle + apart
    return Spread(middle, low, high, len(there), len(values))


def target_of(variant, target):
    """The target asked for, or that of the comparison."""
    if target is None and np.isnan(variant.target_loss):
        raise Wrong(f"{variant.name}: no target is known: choose --target loss=X")
    return target or Target(KNOWN["loss"], variant.target_loss)


def one_number(run, variant, wanted, target):
    """A run's: a quality at its end, a cost to the target. NaN: it has none."""
    values = run.column(wanted)
    if not run.whole:
        return np.nan
    if not wanted.is_cost:
        return values[-1]
    aim = target_of(variant, target)
    there = np.flatnonzero(aim.reached(run.column(aim.quantity)))
    return values[there[0]] if len(there) else np.nan


def point(variant, wanted, target, over):
    """The Spread of a variant's runs."""
    return spread([one_number(run, variant, wanted, target) for run in variant.runs], over)


def total(variant, wanted, over):
    """Like point(), of a cost at the end."""
    ends = [run.column(wanted)[-1] if run.whole else np.nan for run in variant.runs]
    return spread(ends, over)
