"""Where rounding decides: problems that a test of algorithms leaves out."""
import numpy as np


class Edge:
    """Notes when a compressor's input lies so near an edge (the sign of an element, which of two is
    larger) that single precision
    could decide otherwise than double."""

    def __init__(self, width):
        self.near, self.width = False, width

    def watch(self, compress):
        def watched(v):
            out = compress(v)
            step = self.width * np.maximum(1, abs(v))
            outward = np.where(out == 0, step, -step) * np.sign(
                v
            )  # entries that stay at home grow, those that are sent shrink
            for nudge in (step, -step, outward):
                self.near = self.near or abs(compress(v + nudge) - out).max() > 2e-4
            return out

        return watched
