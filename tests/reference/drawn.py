"""Compressors that draw or rotate, once more in float64 numpy, from the papers and from
docs/compressors.md: nothing of Starling's is used.

Each reads a message in each row, and what it draws follows from (seed, row, exchange, element), as
the page promises, so that a run can be compared number by number.
"""
import functools
import math

import numpy as np

COMPRESS, ROTATE = 5, 8  # purposes of random numbers
PIECE, LOW = 1 << 14, 0xFFFFFFFF


def philox(rounds, key, c):
    """Salmon, Moraes, Dror, Shaw 2011. key, c: two and four words, or arrays of words."""
    for _ in range(rounds):
        left, right = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [right >> 32 ^ c[1] ^ key[0], right & LOW, left >> 32 ^ c[3] ^ key[1], left & LOW]
        key = key[0] + 0x9E3779B9 & LOW, key[1] + 0xBB67AE85 & LOW
    return c


@functools.lru_cache(maxsize=512)
def philox_words(rounds, seed, exchange, purpose, rows, blocks):
    """Words of each row, four a block."""
    tail = [exchange % (1 << 32), exchange >> 32 << 16 | purpose]
    row, block = (index.ravel().astype(np.uint64) for index in np.indices((rows, blocks)))
    words = philox(rounds, (seed % (1 << 32), seed >> 32), [block, row, *tail])
    return np.stack(words, axis=1).reshape(rows, -1)


class Draws:
    """What the messages of an exchange draw; a row is a node's."""

    def __init__(self, seed=1):
        self.seed, self.exchange, self.stage = seed, 1, 0

    def words(self, rows, count, purpose=COMPRESS, rounds=7):
        """(rows, at least count)"""
        purpose |= self.stage << 8
        return philox_words(rounds, self.seed, self.exchange, purpose, rows, -(-count // 4))

    def below(self, rows, d, count):
        """Numbers below d (Lemire 2019), a list of about `count` for each row."""
        products = self.words(rows, count, rounds=10) * np.uint64(d)
        fair = (products & LOW) >= (1 << 32) % d
        return [row[ok] >> np.uint64(32) for row, ok in zip(products, fair)]

    def bits(self, rows, count, purpose):
        words = self.words(rows, -(-count // 32), purpose)
        shifts = np.arange(32, dtype=np.uint64)
        return (words[:, :, None] >> shifts & np.uint64(1)).reshape(rows, -1)[:, :count]

    def octets(self, rows, count):
        return self.words(rows, -(-count // 16) * 4).astype("<u4").view(np.uint8)

    def sixteen(self, shape):
        """Of each element, in [0, 1): bytes i and i + 1 of its block of sixteen."""
        rows, d = shape
        low = self.octets(rows, d).reshape(rows, -1, 16).astype(float)
        found = low + 256 * np.roll(low, -1, axis=2)
        return found.reshape(rows, -1)[:, :d] / 65536

    def halves(self, shape):
        """Of each element sixteen bits of its own."""
        rows, d = shape
        return self.octets(rows, 2 * d).view("<u2")[:, :d]


def by_bucket(v, size):
    size = size or v.shape[1]
    for begin in range(0, v.shape[1], size):
        yield slice(begin, begin + size)


def divided(v, positive):
    return v / np.where(positive > 0, positive, 1)


def stochastic(v, scale, levels, draws):
    """|v| levels / scale, to the nearest 2^-16, is rounded up as often as it is beyond a level."""
    exact = np.floor(divided(abs(v), scale) * levels * 65536 + 0.5) / 65536
    return np.sign(v) * np.minimum(np.floor(exact + draws), levels) * scale / levels


def qsgd(v, draws, levels, bucket=0, contractive=False):
    """Alistarh et al., QSGD, NeurIPS 2017."""
    out, random = np.zeros_like(v), draws.sixteen(v.shape)
    for at in by_bucket(v, bucket):
        norm = np.linalg.norm(v[:, at], axis=1, keepdims=True)
        out[:, at] = stochastic(v[:, at], norm, levels, random[:, at])
    size = min(bucket or v.shape[1], v.shape[1])
    omega = min(size / levels**2, math.sqrt(size) / levels)
    return out / (1 + omega) if contractive else out


def terngrad(v, draws, bucket=0, clip_sigma=0, contractive=False, share_scale=False):
    """Wen et al., TernGrad, NeurIPS 2017, with section 3.3's clipping, and its sharing: all rows
    take the largest of their scales."""
    out, random = np.zeros_like(v), draws.sixteen(v.shape)
    for at in by_bucket(v, bucket):
        scale = abs(v[:, at]).max(axis=1, keepdims=True)
        if clip_sigma:
            sigma = np.sqrt((v[:, at] ** 2).mean(axis=1, keepdims=True))
            scale = np.minimum(scale, clip_sigma * sigma)
        if share_scale:
            scale = scale.max(axis=0, keepdims=True)
        out[:, at] = stochastic(v[:, at], scale, 1, random[:, at])
    whole = min(bucket or v.shape[1], v.shape[1])
    omega = 1 + clip_sigma**2 / 8 if clip_sigma else (math.sqrt(whole) - 1) / 2
    return out / (1 + omega) if contractive else out


def kept_entries(k, fraction, d):
    return k or max(1, math.floor(fraction * d + 0.5))


def random_k(v, draws, k=None, fraction=None, scaled=False, contractive=False):
    """k coordinates: numbers below d are drawn until k have come; beyond d/2, what is left out."""
    rows, d = v.shape
    kept = kept_entries(k, fraction, d)
    drawn, taken = min(kept, d - kept), np.zeros(v.shape, bool)
    for row, numbers in enumerate(draws.below(rows, d, 4 * drawn + 64)):
        _, first = np.unique(numbers, return_index=True)
        assert len(first) >= drawn
        taken[row, numbers[np.sort(first)[:drawn]]] = True
    out = np.where(taken != (2 * kept > d), v, 0)
    return out * (d / kept if scaled and not contractive else 1)


def random_dropping(v, draws, probability, scaled=False, contractive=False):
    p = max(1, math.floor(probability * 65536 + 0.5)) / 65536
    out = np.where(draws.halves(v.shape) < p * 65536, v, 0)
    return out / (p if scaled and not contractive else 1)


def natural(v, draws, contractive=False):
    """Horvath et al., Natural Compression, MSML 2022: of the two powers of two around |v|, the
    upper one as often as |v| is nearer to it."""
    mantissa, exponent = np.frexp(abs(v))  # in [1/2, 1)
    up = 2 * mantissa - 1 + draws.sixteen(v.shape) + 0.5 / 65536 >= 1
    out = np.where(v == 0, 0, np.sign(v) * np.ldexp(1.0, exponent - 1 + up))
    return out / 1.125 if contractive else out


def magnitude_dropping(v, draws, k=None, fraction=None, contractive=False):
    """Wangni et al., Gradient Sparsification, NeurIPS 2018, Algorithm 3."""

    def rate(v, kept):
        certain, found = np.zeros(len(v), bool), 0
        while kept > certain.sum() and abs(v[~certain]).sum() > 0:
            found = (kept - certain.sum()) / abs(v[~certain]).sum()
            more = abs(v) * found >= 1
            if (more == certain).all():
                break
            certain = more
        return found

    rows, d = v.shape
    kept = kept_entries(k, fraction, d)
    lambdas = np.array([[rate(row, kept)] for row in v])
    p = np.minimum(1, lambdas * abs(v))
    drawn = draws.words(rows, d)[:, :d] / 2.0**32
    out = np.where(drawn < p, divided(v, p), 0)
    return out * kept / d if contractive else out


# ---- rotations ----


def blocks_of(d):
    """Whole pieces, then falling powers of two."""
    at = 0
    while at < d:
        size = min(PIECE, 1 << (d - at).bit_length() - 1)
        yield slice(at, at + size)
        at += size


@functools.lru_cache(maxsize=None)
def walsh(n):
    """H_2n = [[H_n, H_n], [H_n, -H_n]], orthonormal."""
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h / math.sqrt(n)


def transformed(v):
    """Each block by its matrix, which is its own inverse."""
    return np.concatenate([v[:, at] @ walsh(at.stop - at.start) for at in blocks_of(v.shape[1])], 1)


def rotated(inner, draws, purpose):
    """inner between a rotation and its inverse; `around` puts that around something else."""

    def compress(v):
        signs = 1.0 - 2.0 * draws.bits(*v.shape, purpose)
        return signs * transformed(inner(transformed(signs * v)))

    compress.inner, compress.around = inner, lambda other: rotated(other, draws, purpose)
    return compress


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@functools.lru_cache(maxsize=None)
def lloyd_max(bits):
    """The points of a normal distribution: each the mean of what is nearest to it."""
    points = np.linspace(-2, 2, 1 << bits)
    for _ in range(4000):
        edges = [-30, *((points[1:] + points[:-1]) / 2), 30]
        mass = np.diff([math.erf(x / math.sqrt(2)) / 2 for x in edges])
        points = -np.diff([density(x) for x in edges]) / mass
    return points


def eden(u, bits=1, contractive=False):
    """Vargaftik et al., EDEN, ICML 2022, of rotated rows; of one bit DRIVE, NeurIPS 2021."""
    out = np.zeros_like(u)
    for at in blocks_of(u.shape[1]):
        part = u[:, at]
        norm = np.linalg.norm(part, axis=1, keepdims=True)
        unit = divided(part, norm) * math.sqrt(part.shape[1])
        points = lloyd_max(bits)
        q = points[np.searchsorted((points[1:] + points[:-1]) / 2, unit, side="right")]
        with_u = (part * q).sum(axis=1, keepdims=True)
        own = (q * q).sum(axis=1, keepdims=True)
        scale = with_u / own if contractive else divided(norm**2, with_u)
        out[:, at] = np.where(norm > 0, scale * q, 0)
    return out


PLAIN = {
    "qsgd": qsgd,
    "terngrad": terngrad,
    "natural": natural,
    "random-k": random_k,
    "random-dropping": random_dropping,
    "magnitude-dropping": magnitude_dropping,
}
ROTATED = {f"rotated-{name}": PLAIN[name] for name in ("qsgd", "terngrad")}
NAMES = [*PLAIN, *ROTATED, "drive", "eden"]


def compressor(name, config, draws):
    """Of an experiment's algorithm.compressor."""
    if name in PLAIN:
        return functools.partial(PLAIN[name], draws=draws, **config)
    if name in ROTATED:
        inner = functools.partial(ROTATED[name], draws=draws, **config)
        return rotated(inner, draws, ROTATE)
    return rotated(functools.partial(eden, **config), draws, COMPRESS)
