"""Where rounding decides: problems that a test of algorithms leaves out."""
import functools

import numpy as np


class Edge:
    """Notes when a compressor's input lies so near an edge (the sign of an element, which of two is
    larger), or what decides whether a message is sent, that single precision could decide otherwise
    than double."""

    def __init__(self, width):
        self.near, self.width = False, width

    def exceeds(self, a, b):
        larger = np.maximum(a, b)
        width = self.width * (20 * larger + 2 * np.sqrt(larger))
        self.near = self.near or bool(((a != b) & (abs(a - b) < width)).any())
        return a > b

    def watch(self, compress):
        """Of what is rotated, the elements that the compressor inside gets."""
        if hasattr(compress, "around"):
            return compress.around(self.watch(compress.inner))

        @functools.wraps(compress)
        def watched(v, *fresh):
            out = compress(v, *fresh)
            step = self.width * np.maximum(1, abs(v))
            outward = np.where(out == 0, step, -step) * np.sign(
                v
            )  # entries that stay at home grow, those that are sent shrink
            for nudge in (step, -step, outward):
                self.near = self.near or abs(compress(v + nudge, *fresh) - out).max() > 2e-4
            return out

        return watched
