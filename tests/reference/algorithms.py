"""Every algorithm once more, in float64 numpy, written from the papers and from docs only: it
shares no code with Starling.

tests/parity/test_algorithms.py and test_expectations.py compare Starling with it. Matrices have a
row for each node: X (n, d) models, G gradients. W_ij is the weight that receiver i gives sender j,
so that W @ X is what arrives. rate is the learning rate of the round.

A round takes one gradient. With local_steps = H, rounds that H does not divide are a step of SGD on
each node alone; every H-th one is the algorithm's own, and these exchanges are counted from 1 on
their own: a schedule of graphs and ECD's t advance with them.
"""
import functools
import math

import numpy as np

import dpsgd  # graphs and their matrices, the learning rate
import drawn  # compressors that draw or rotate
import families  # random numbers


# ---- compressors: a message in each row ----


def top_k(v, k=None, fraction=None):
    """The k entries of largest magnitude; of equal ones those with the lower index."""
    kept = drawn.kept_entries(k, fraction, v.shape[1])
    chosen = np.argsort(-abs(v), axis=1, kind="stable")[:, :kept]
    out = np.zeros_like(v)
    np.put_along_axis(out, chosen, np.take_along_axis(v, chosen, axis=1), axis=1)
    return out


def scaled_sign(v, bucket=0):
    """mean |v| * sign(v), sign(0) = +1, for each bucket of elements; 0: one bucket."""
    out = np.empty_like(v)
    for at in drawn.by_bucket(v, bucket):
        size = abs(v[:, at]).mean(axis=1, keepdims=True)
        out[:, at] = np.where(v[:, at] < 0, -1, 1) * size
    return out


def one_bit(v, bucket=0):
    """The mean of what is not below 0, and the mean of the rest, for each bucket."""
    out = np.empty_like(v)
    for at in drawn.by_bucket(v, bucket):
        up = v[:, at] >= 0
        out[:, at] = up * mean_where(v[:, at], up) + ~up * mean_where(v[:, at], ~up)
    return out


def rounded_to(v, digits, least):
    """To the nearest of so many binary digits, ties to even; below 2^least the last place stays.
    float16 and bfloat16 are IEEE 754's and its upper half, float8 is E5M2 (Micikevicius et al.
    2022)."""
    _, exponent = np.frexp(v)  # |v| in [2^(exponent - 1), 2^exponent)
    step = np.ldexp(1.0, np.maximum(exponent - 1, least) - digits + 1)
    return step * np.rint(v / step)


def by_threshold(v, threshold):
    """CD-SGD's two bits, and Strom's entries: tau, -tau or 0."""
    return np.where(v >= threshold, threshold, np.where(v <= -threshold, -threshold, 0.0))


def stc(v, k=None, fraction=None):
    """The k entries of largest magnitude, each as the mean of their magnitudes with its sign."""
    out = top_k(v, k, fraction)
    count = drawn.kept_entries(k, fraction, v.shape[1])
    return np.sign(out) * abs(out).sum(axis=1, keepdims=True) / count


def ends(v, count):
    """What is among the `count` largest values of each row, by index where they are equal."""
    chosen = np.zeros(v.shape, bool)
    order = np.argsort(-v, axis=1, kind="stable")[:, :count]
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def mean_where(v, chosen):
    count = np.maximum(chosen.sum(axis=1, keepdims=True), 1)
    return np.where(chosen, v, 0).sum(axis=1, keepdims=True) / count


def sbc(v, k=None, fraction=None):
    """Of the k largest and the k least the side with the larger mean, as that mean."""
    kept = drawn.kept_entries(k, fraction, v.shape[1])
    up, down = ends(v, kept), ends(-v, kept)
    above, below = mean_where(v, up), mean_where(v, down)
    return np.where(above >= -below, up * above, down * below)


def pos_neg(v, k=None, fraction=None):
    """The k largest and the k least, each as the mean of its kind."""
    kept = drawn.kept_entries(k, fraction, v.shape[1])
    up, down = ends(v, kept), ends(-v, min(kept, v.shape[1] - kept))
    assert not (up & down).any()
    return up * mean_where(v, up) + down * mean_where(v, down)


def three_lc(v, multiplier=1.0):
    """M where an element is at least half of M = s max |v|, with its sign."""
    m = multiplier * abs(v).max(axis=1, keepdims=True)
    return np.where(2 * abs(v) >= m, np.sign(v) * m, 0)


def adacomp(v, fresh, bin=500):
    """Chen et al. 2018: G = v, H = G + g; where |H| reaches the bin's largest |G|, the sign of G,
    times the mean of these."""
    bins = list(drawn.by_bucket(v, bin))
    largest = [abs(v[:, at]).max(axis=1, keepdims=True) for at in bins]
    scale = np.concatenate(largest, axis=1).mean(axis=1, keepdims=True)
    out = np.zeros_like(v)
    for at, m in zip(bins, largest):
        reaches = abs(v[:, at] + fresh[:, at]) >= m
        out[:, at] = np.where(reaches, np.sign(v[:, at]) * scale, 0)
    return out


def rest_of(v, modulus):
    """What is left of v by a modulus, in [-modulus/2, modulus/2)."""
    return v - modulus * np.floor(v / modulus + 0.5)


def modulus_of(bits, theta):
    return 2 * theta / (1 - 2.0**-bits)


def grid(v, bits=4):
    """LAQ's: 2^bits points from -max|v| to max|v|."""
    largest = abs(v).max(axis=1, keepdims=True)
    step = 2 * np.where(largest > 0, largest, 1) / (2**bits - 1)
    return np.where(largest > 0, step * np.floor((v + largest) / step + 0.5) - largest, 0)


def modular(v, bits=8, theta=2.0):
    """The same on a grid of 2^bits points, whose two ends are one."""
    modulus = modulus_of(bits, theta)
    step = modulus / 2**bits
    level = np.floor(rest_of(v, modulus) / step + 0.5)
    return step * np.where(level == 2 ** (bits - 1), -level, level)


def compressor(config, draws=None, exchange=1):
    """The compressor of an experiment's algorithm.compressor; draws: what random ones draw."""
    config = {"name": config} if isinstance(config, str) else dict(config)
    name = config.pop("name")
    passed = [value for first, value in config.pop("schedule", []) if first <= exchange]
    if passed:
        config[next(key for key in ("fraction", "levels", "bits") if key in config)] = passed[-1]
    config.pop("coding", None)  # lossless: it changes messages, not what they say
    if name in drawn.NAMES:
        return drawn.compressor(name, config, draws)
    found = functools.partial(COMPRESSORS[name], **config)
    found.reads_fresh = name == "adacomp"
    return found


COMPRESSORS = {
    "identity": np.copy,
    "float16": functools.partial(rounded_to, digits=11, least=-14),
    "bfloat16": functools.partial(rounded_to, digits=8, least=-126),
    "float8": functools.partial(rounded_to, digits=3, least=-14),
    "top-k": top_k,
    "scaled-sign": scaled_sign,
    "1-bit": one_bit,
    "threshold": by_threshold,
    "strom": by_threshold,
    "stc": stc,
    "sbc": sbc,
    "pos-neg": pos_neg,
    "3lc": three_lc,
    "adacomp": adacomp,
    "modular": modular,
    "grid": grid,
}


# ---- what every algorithm has ----


class Algorithm:
    """Models X, and how one round changes them.

    at()            where gradients are taken
    local(update)   a round without exchange
    exchange(w, u)  the algorithm's own round; u = rate * mom(gradient)
    """

    takes_momentum, zeros = True, ()

    def reduced(self, g):
        """What the step is along; None: there is none."""
        return g

    def __init__(self, x0, settings, compress):
        self.x = x0.copy()
        self.n, self.d = x0.shape
        self.settings, self.compress = settings, compress
        self.exchanges = 0
        for name in self.zeros:
            setattr(self, name, np.zeros_like(self.x))
        self.start()

    def start(self):
        """Its state; `zeros` names what begins as nothing, a row for each node."""

    def at(self):
        return self.x

    def decays(self):
        """What weight decay pulls to zero."""
        return self.at()

    def models(self):
        return self.x

    def local(self, update):
        self.x = self.x - update

    def get(self, key, default=None):
        return self.settings.get(key, default)

    @staticmethod
    def own_compressor(settings):
        return settings.get("compressor", "identity")


class GradientAlgorithm(Algorithm):
    """Takes the gradient itself, and no momentum: exchange(w, g, rate)."""

    takes_momentum = False


def mean_rows(v):
    return v.mean(axis=0, keepdims=True).repeat(len(v), axis=0)


# ---- decentralized ----


class AdaptThenCombine(Algorithm):
    def exchange(self, w, u):
        self.x = w @ (self.x - u)


class CombineWhileAdapt(Algorithm):
    """Lian et al., NeurIPS 2017, Algorithm 1."""

    def exchange(self, w, u):
        self.x = w @ self.x - u


class MaskedGossip(Algorithm):
    """Tang, Shi, Chu, SAPS-PSGD, ICDCS 2020, block after block of the coordinates."""

    @staticmethod
    def own_compressor(settings):
        return "identity"

    def exchange(self, w, u):
        blocks = round(1 / self.get("compressor")["fraction"])
        edges = [self.d * b // blocks for b in range(blocks + 1)]
        b = (self.exchanges - 1) % blocks
        mask = np.zeros(self.d)
        mask[edges[b] : edges[b + 1]] = 1
        half = self.x - u
        self.x = half + mask * (w @ half - half)


class Naive(Algorithm):
    """Compresses the model itself; here to show why that fails."""

    def exchange(self, w, u):
        self.x = w @ self.compress(self.x) - u


class Dcd(Algorithm):
    """Tang et al., Communication Compression for Decentralized Training, NeurIPS 2018, Algorithm
    1."""

    def start(self):
        self.replica = self.x.copy()

    def exchange(self, w, u):
        h = w @ self.replica - u
        q = self.compress(h - self.x)
        self.x = self.x + q
        self.replica = self.replica + q


class Ecd(Algorithm):
    """The same paper, Algorithm 2."""

    def start(self):
        self.replica = self.x.copy()

    def exchange(self, w, u):
        t = self.exchanges
        new = w @ self.replica - u
        z = (1 - t / 2) * self.x + t / 2 * new
        self.replica = (1 - 2 / t) * self.replica + 2 / t * self.compress(z)
        self.x = new


class ChocoCompressThenMix(Algorithm):
    """Koloskova et al., Decentralized Stochastic Optimization and Gossip Algorithms with Compressed
    Communication, ICML 2019, Alg. 2."""

    def start(self):
        self.hat, self.silent = np.zeros_like(self.x), np.zeros((self.n, 1), int)

    def consensus(self, w):
        return self.get("consensus_step") * (w @ self.hat - w.sum(axis=1, keepdims=True) * self.hat)

    def news(self, x, rounds_ago=0):
        """Singh et al., SPARQ-SGD, 2019, Algorithm 1: none of who has hardly moved by the local
        step of that round."""
        q, c = self.compress(x - self.hat), self.get("trigger", 0)
        if c > 0:
            t = self.round - rounds_ago
            near = c * t ** self.get("trigger_growth", 0)
            near *= dpsgd.learning_rate(self.optimizer, t) ** 2
            speaks = self.exceeds(norms(x - self.hat) ** 2, near)
            self.silent += ~speaks
            q = np.where(speaks, q, 0)
        return q

    def exchange(self, w, u):
        half = self.x - u
        self.hat = self.hat + self.news(half)
        self.x = half + self.consensus(w)


class ChocoMixThenCompress(ChocoCompressThenMix):
    """The form of ICLR 2020: a message leaves beside the gradient of the exchange that adds it, so
    it knows the local steps since the one before."""

    def exchange(self, w, u):
        if self.exchanges > 1:
            self.hat = self.hat + self.news(self.x, rounds_ago=1)
        self.x = self.x - u + self.consensus(w)


class ChocoByLink(Algorithm):
    """The rule of docs/algorithms.md: messages for each edge, as long as its link carries in the
    time that its step has; top-k without a coding, on settings["network"]."""

    header = 8 * 64  # bits

    @staticmethod
    def own_compressor(settings):
        return "identity"

    def start(self):
        self.hat = np.zeros((self.n, self.n, self.d))  # what [j] knows of [i]
        self.dense = False  # true: the next exchange is of models

    def bits(self, k):
        return self.header + min(k * (32 + math.ceil(math.log2(self.d))), self.d + 32 * k)

    def links(self, w):
        """Of each edge its step, 1000 bits a ms, and latency in ms."""
        network, found = self.get("network"), {}
        of_pair = {frozenset(row[:2]): row[2:] for row in network.get("links", [])}
        for i, j in np.argwhere(np.triu(w, 1)):
            taken = {step for edge, (step, *_) in found.items() if {i, j} & set(edge)}
            own = of_pair.get(frozenset((i, j)), [math.inf])
            speed = min(own[0], network["bandwidth_mbit"])
            latency = own[1] if len(own) > 1 else network.get("latency_ms", 0)
            found[i, j] = min(set(range(2 * self.n)) - taken), 1000 * speed, latency
        return found

    def entries(self, w):
        """Of each edge."""
        links, budget = self.links(w), self.get("budget")
        steps = {step for step, *_ in links.values()}
        slowest = {s: min(b for step, b, _ in links.values() if step == s) for s in steps}
        left = budget["round_ms"]
        if left == "median":
            usual = drawn.kept_entries(**{"k": None, "fraction": None, **self.kept()}, d=self.d)
            speeds = sorted(b for _, b, _ in links.values())
            left = len(steps) * self.bits(usual) / speeds[len(speeds) // 2]
        else:
            left -= sum(max(t for step, _, t in links.values() if step == s) for s in steps)
        least = max(1, math.ceil(budget.get("fraction_min", 0.001) * self.d))
        whole = 32 * self.d + self.header
        most, low, high = max(whole, self.bits(least)), 0.0, 1e12
        for _ in range(200):  # by halves: t_c = min(times b_c^-1/2, what the whole vector takes)
            times = (low + high) / 2
            given = {s: min(times * b**-0.5, most / b) for s, b in slowest.items()}
            low, high = (times, high) if sum(given.values()) < left else (low, times)
        return {
            edge: max(
                k
                for k in range(least, self.d + 1)
                if k == least
                or self.bits(k) <= min(given[step] * speed, whole)
            )
            for edge, (step, speed, _) in links.items()
        }

    def kept(self):
        return {key: v for key, v in self.get("compressor").items() if key != "name"}

    def exchange(self, w, u):
        half = self.x - u
        self.x, mixed = half.copy(), (w.sum(axis=1) - w.diagonal()).max()
        for (i, j), k in self.entries(w).items():
            compress = self.watch(functools.partial(top_k, k=k))
            for a, b in ((i, j), (j, i)):
                news = (half[a] - self.hat[a, b])[None]
                self.hat[a, b] += (news if self.dense else compress(news))[0]
            step = self.get("consensus_step") or min(1, k / self.d / mixed)
            pull = step * w[i, j] * (self.hat[j, i] - self.hat[i, j])
            self.x[i] += pull
            self.x[j] -= pull
        self.dense = False


class DeepSqueeze(Algorithm):
    """Tang et al., DeepSqueeze: Decentralization Meets Error-Compensated Compression, 2019."""

    zeros = ("error",)

    def exchange(self, w, u):
        h = self.x - u
        v = h + self.error
        q = self.compress(v)
        self.error = v - q
        self.x = h + self.get("eta") * (w - np.eye(self.n)) @ q


class Moniqua(Algorithm):
    """Lu, De Sa, Moniqua, ICML 2020, Algorithm 1, rounded to nearest."""

    @staticmethod
    def own_compressor(settings):
        return {"name": "modular", **{k: settings[k] for k in ("bits", "theta") if k in settings}}

    def exchange(self, w, u):
        half = self.x - u
        q = self.compress(half)
        modulus = modulus_of(self.get("bits", 8), self.get("theta", 2.0))
        self.x = half.copy()
        for i in range(self.n):
            near = half[i] + rest_of(q - half[i], modulus)
            self.x[i] += w[i] @ (near - near[i])


def spanning_tree(w):
    """The neighbours of each node in the tree that breadth-first search from node 0 finds."""
    n = len(w)
    around, queue, seen = [[] for _ in range(n)], [0], {0}
    for i in queue:
        for j in range(n):
            if j != i and w[i, j] != 0 and j not in seen:
                seen.add(j)
                queue.append(j)
                around[i].append(j)
                around[j].append(i)
    return around


class RelaySum(Algorithm):
    """Vogels et al., RelaySum, NeurIPS 2021, Algorithm 1, of models; counts are sent, too."""

    def start(self):
        self.first, self.sent = self.x.copy(), None

    def exchange(self, w, u):
        around, y, n = spanning_tree(w), self.x - u, self.n
        if self.sent is None:
            edges = [(i, j) for i in range(n) for j in around[i]]
            self.sent = {edge: (np.zeros(self.d), 0) for edge in edges}
        before, self.sent = self.sent, {}
        for i, j in before:
            others = [before[k, i] for k in around[i] if k != j]
            vector = y[i] + sum(v for v, _ in others)
            self.sent[i, j] = vector, 1 + sum(count for _, count in others)
        self.x = y.copy()
        for i in range(n):
            came = [self.sent[k, i] for k in around[i]]
            missing = n - 1 - sum(count for _, count in came)
            self.x[i] = (y[i] + sum(v for v, _ in came) + missing * self.first[i]) / n


class Weighted(Algorithm):
    """x has push-sum's numerators."""

    def at(self):
        return self.x / self.weight

    def decays(self):
        return self.x

    def models(self):
        return self.x / self.weight


class PushSum(Weighted):
    """SGP; Assran et al., Stochastic Gradient Push for Distributed Deep Learning, ICML 2019. w is
    column-stochastic."""

    def start(self):
        self.weight = np.ones((self.n, 1))

    def exchange(self, w, u):
        self.x = w @ (self.x - u)
        self.weight = w @ self.weight


class GradientTracking(GradientAlgorithm):
    """Koloskova, Lin, Stich, An Improved Analysis of Gradient Tracking for Decentralized Machine
    Learning, 2021."""

    zeros = ("mixed", "last")  # W q of the exchange before; the gradient of the round before

    def exchange(self, w, g, rate):
        q = self.mixed + g - self.last
        self.last = g
        self.x = self.moved(w, q, rate)
        self.mixed = w @ q

    def moved(self, w, q, rate):
        return w @ (self.x - rate * q)


class DIGing(GradientTracking):
    """Nedic, Olshevsky, Shi, Achieving Geometric Convergence for Distributed Optimization over
    Time-Varying Graphs, 2017."""

    def moved(self, w, q, rate):
        return w @ self.x - rate * q


class ExactDiffusion(GradientAlgorithm):
    """Yuan, Ying, Zhao, Sayed, Exact Diffusion for Distributed Optimization and Learning, 2018; D^2
    is its stochastic form."""

    def start(self):
        self.psi = self.x.copy()

    def exchange(self, w, g, rate):
        psi = self.x - rate * g
        mixed = w if self.get("matrix") == "plain" else (np.eye(self.n) + w) / 2
        self.x = mixed @ (psi + self.x - self.psi)
        self.psi = psi


class QuasiGlobalMomentum(GradientAlgorithm):
    """Lin, Karimireddy, Stich, Jaggi, Quasi-Global Momentum, ICML 2021, Algorithm 1."""

    zeros = ("buffer",)

    def exchange(self, w, g, rate):
        beta = self.get("beta", 0.9)
        mu = self.get("mu", beta)
        local = beta * self.buffer + g
        new = w @ (self.x - rate * (g + beta * local if self.get("nesterov") else local))
        if rate:
            self.buffer = mu * self.buffer + (1 - mu) * (self.x - new) / rate
        self.x = new


class DecentLam(GradientAlgorithm):
    """Yuan et al., DecentLaM, ICCV 2021, Algorithm 2: heavy ball on what D-PSGD descends."""

    zeros = ("buffer",)

    def exchange(self, w, g, rate):
        mixed = w @ (self.x - rate * g)
        if not rate:
            self.x = mixed
            return
        self.buffer = self.get("beta", 0.9) * self.buffer + (self.x - mixed) / rate
        self.x = self.x - rate * self.buffer


class Beer(GradientAlgorithm):
    """Zhao, Li, Li, Richtarik, Chi, BEER, NeurIPS 2022, Alg. 1. The paper's iteration ends with
    the tracker at the new model; a round here begins with it, so the first has no tracker to send.
    """

    zeros = ("h", "g", "tracker", "last")

    def exchange(self, w, g, rate):
        step, laplacian = self.get("consensus_step"), w - np.eye(self.n)
        self.tracker = self.tracker + step * laplacian @ self.g + g - self.last
        self.last = g
        if self.exchanges > 1:
            self.g = self.g + self.compress(self.tracker - self.g)
        self.x = self.x + step * laplacian @ self.h - rate * self.tracker
        self.h = self.h + self.compress(self.x - self.h)


class Lead(GradientAlgorithm):
    """Liu, Li, Wang, Tang, Yan, LEAD, ICLR 2021, Algorithm 1."""

    zeros = ("dual", "h", "h_w")

    def exchange(self, w, g, rate):
        alpha, gamma = self.get("alpha", 0.5), self.get("gamma", 1)
        if self.exchanges == 1:
            self.x = self.x - rate * g
            return
        y = self.x - rate * g - rate * self.dual
        q = self.compress(y - self.h)
        hat, hat_w = self.h + q, self.h_w + w @ q
        self.h = (1 - alpha) * self.h + alpha * hat
        self.h_w = (1 - alpha) * self.h_w + alpha * hat_w
        if rate:
            self.dual = self.dual + gamma / (2 * rate) * (hat - hat_w)
            self.x = self.x - rate * g - rate * self.dual
        else:
            self.x = self.x - gamma / 2 * (hat - hat_w)


class ClippedGossip(Algorithm):
    """He, Karimireddy, Jaggi, ClippedGossip, 2022; clip: tau, or the second largest of a node's
    distances."""

    def exchange(self, w, u):
        x = self.x - u
        self.x = x.copy()
        for i in range(self.n):
            near = [j for j in range(self.n) if w[i, j] > 0 and j != i]
            apart = {j: np.linalg.norm(x[j] - x[i]) for j in near}
            tau = self.get("clip", sorted(apart.values())[-2:][0] if near else 0)
            for j in near:
                self.x[i] += w[i, j] * min(1, tau / max(apart[j], 1e-300)) * (x[j] - x[i])


class TrimmedGossip(Algorithm):
    """The mean of all that a node sees, by coordinate, without the largest and the least."""

    def trim(self, values):
        return self.get("trim", 1)

    def exchange(self, w, u):
        x = self.x - u
        self.x = np.empty_like(x)
        for i in range(self.n):
            seen = np.sort(x[w[i] > 0], axis=0)
            cut = self.trim(len(seen))
            self.x[i] = seen[cut : len(seen) - cut].mean(axis=0)


class MedianGossip(TrimmedGossip):
    def trim(self, values):
        return (values - 1) // 2


# ---- centralized and local ----


class LocalSgd(Algorithm):
    def exchange(self, w, u):
        self.x = self.x - u
        if self.is_due():
            self.x = mean_rows(self.x)
            self.end_average()

    def is_due(self):
        return self.exchanges % self.get("period") == 0

    def end_average(self):
        """Of the buffers of momentum; Yu, Jin, Yang 2019 average them."""
        rule = self.get("buffers", "local")
        if rule == "average":
            self.momentum.buffer = mean_rows(self.momentum.buffer)
        if rule == "reset":
            self.momentum.buffer = np.zeros_like(self.x)


class Squeezing:
    """Messages to a server, or to each shard's, and back; compressed, with what they lost added to
    the next."""

    def start(self):
        shards = self.n if self.get("server") == "sharded" else 1
        ends = [k * self.d // shards for k in range(shards + 1)]
        self.shards = [*zip(ends, ends[1:])]
        self.error, self.server_error = np.zeros_like(self.x), np.zeros((1, self.d))
        self.fresh = getattr(self.compress, "reads_fresh", False)
        self.both_ways = self.get("directions") == "both"
        biased = self.get("compressor", {"name": "identity"})["name"] not in ("identity", "qsgd")
        self.keeps_errors = self.get("error_feedback", biased)

    def by_shard(self, *vectors):
        return np.concatenate(
            [self.compress(*(v[:, begin:end] for v in vectors)) for begin, end in self.shards],
            axis=1,
        )

    def told(self, v, u):
        return self.by_shard(v, u) if self.fresh else self.by_shard(v)

    def squeeze(self, u):
        v = u + self.error
        q = self.told(v, u)
        s = q.mean(axis=0, keepdims=True)
        if self.keeps_errors:
            self.error = v - q
        if self.both_ways:
            whole = s + self.server_error
            s = self.by_shard(whole)
            if self.keeps_errors:
                self.server_error = whole - s
        return s.repeat(self.n, axis=0)


class FedAvg(Algorithm):
    """McMahan et al., AISTATS 2017, Algorithm 1, of nodes with as many samples each."""

    seed = 1

    def steps(self):
        """Of each node; a pass over its samples, of which it has one, is a step."""
        steps = self.get("local_epochs", 0) or self.get("local_steps", 1)
        return np.broadcast_to(steps, self.n)

    def period(self):
        return int(self.steps().max())

    def chosen(self):
        """Clients of this turn, (n, 1): Knuth's Algorithm S."""
        turn = (self.round - 1) // self.period() + 1
        if isinstance(self.get("clients"), list):
            now = self.get("clients")[(turn - 1) % len(self.get("clients"))]
            return np.isin(np.arange(self.n), now)[:, None]
        left = max(1, math.floor(self.get("clients", 1) * self.n + 0.5))
        stream = families.Stream(self.seed, 0, turn, purpose=9)
        taken = []
        for i in range(self.n):
            taken.append(stream.below(self.n - i) < left)
            left -= taken[-1]
        return np.array(taken)[:, None]

    def weights(self):
        """n_k of the chosen, else 0, (n, 1); with a sum of 1."""
        given = self.get("client_weights")
        found = self.chosen() * (np.array(given)[:, None] if isinstance(given, list) else 1)
        return found / found.sum()

    def local(self, update):
        at = (self.round - 1) % self.period()
        self.x = self.x - self.chosen() * (at < self.steps())[:, None] * update

    def exchange(self, w, u):
        self.local(u)
        self.x = self.n * mean_rows(self.weights() * self.x)
        self.momentum.buffer = np.zeros_like(self.x)


class CompressedFedAvg(Squeezing, FedAvg):
    """FedAvg whose clients send the compressed change of the model."""

    def start(self):
        super().start()
        self.common = self.x[:1].copy()

    def exchange(self, w, u):
        self.local(u)
        chosen = self.chosen()
        change = self.x - self.common
        v = change + self.error
        q = self.told(v, change)
        if self.keeps_errors:
            self.error = np.where(chosen, v - q, self.error)
        s = (self.weights() * q).sum(axis=0, keepdims=True) + self.server_error
        sent = self.by_shard(s) if self.both_ways else s
        if self.keeps_errors:
            self.server_error = s - sent
        self.common = self.common + sent
        self.x = self.common.repeat(self.n, axis=0)
        self.momentum.buffer = np.zeros_like(self.x)


class GossipPga(Algorithm):
    """Chen et al., Accelerating Gossip SGD with Periodic Global Averaging, ICML 2021, Algorithm
    1."""

    def exchange(self, w, u):
        once = self.exchanges % self.get("average_period", 6) == 0
        self.x = mean_rows(self.x - u) if once else w @ (self.x - u)


class Periodic(Algorithm):
    """Exchanges every `period` rounds."""

    is_periodic = True


class PostLocalSgd(LocalSgd):
    """Lin et al., Don't Use Large Mini-Batches, Use Local SGD, ICLR 2020: C-SGD up to the switch,
    then local SGD, whose period counts from there."""

    def reduced(self, g):
        return mean_rows(g) if self.exchanges < self.get("switch_round") else g

    def is_due(self):
        after = self.exchanges - self.get("switch_round")
        return after > 0 and after % self.get("period") == 0


class AdaComm(LocalSgd):
    """Wang, Joshi, Adaptive Communication Strategies, MLSys 2019, section 4, anew at each average,
    of the losses since the last; the first average follows round 1."""

    def start(self):
        self.losses, self.waits, self.first, self.top = [], 1, None, 0

    def is_due(self):
        self.losses.append(self.loss.mean())
        return len(self.losses) >= self.waits

    def end_average(self):
        super().end_average()
        mean, longest, before = np.mean(self.losses), self.get("period"), self.waits
        begins, self.first = self.first is None, self.first or mean
        self.top = max(self.top, self.rate)
        by_rate = self.get("period_schedule") == "adaptive-rate"
        ratio = math.sqrt(mean / self.first * (self.top / self.rate if by_rate else 1))
        self.waits = 1  # as many as there are whole numbers below the rule's, and one
        for shorter in range(1, longest):
            self.waits += bool(self.exceeds(ratio * longest, shorter))
        halves = self.get("period_schedule") == "adaptive-halving" and not begins
        if halves and self.waits >= before:
            self.waits = -(-before // 2)
        self.losses = []


class GrowingPeriod(LocalSgd):
    """Haddadpour et al., Local SGD with Periodic Averaging, NeurIPS 2019, their program's form."""

    def start(self):
        self.averages, self.waited = 0, 0

    def is_due(self):
        self.waited += 1
        grown = int((1 + self.get("growth", 1) * self.averages) * self.get("first_period", 1))
        return self.waited >= min(grown, self.get("period"))

    def end_average(self):
        super().end_average()
        self.averages, self.waited = self.averages + 1, 0


class SlowMo(Weighted, LocalSgd):
    """Wang et al., SlowMo, ICLR 2020, Algorithm 1: local SGD, D-PSGD or SGP, the steps of which are
    taken to the last, and then the exact average. x: SGP's numerators."""

    def start(self):
        self.anchor, self.slow = self.x.copy(), np.zeros_like(self.x)
        self.weight = np.ones((self.n, 1))
        self.base = self.get("base", "local-sgd")

    def exchange(self, w, u):
        self.x = self.x - u
        if self.base != "local-sgd":
            self.x, self.weight = w @ self.x, w @ self.weight
        if self.base != "sgp":
            self.weight = np.ones((self.n, 1))
        if self.exchanges % self.get("period", 12) == 0:
            self.outer_step(mean_rows(self.x))
            self.weight = np.ones((self.n, 1))
            self.end_average()

    def outer_step(self, mean):
        if self.rate == 0:
            self.anchor = mean
        else:
            beta, alpha = self.get("beta", 0.5), self.get("slow_rate", 1)
            self.slow = beta * self.slow + (self.anchor - mean) / self.rate
            self.anchor = self.anchor - alpha * self.rate * self.slow
        self.x = self.anchor


class DiLoCo(Periodic):
    """Douillard et al., DiLoCo, 2023, Algorithm 1; PyTorch's SGD as the outer optimizer."""

    def start(self):
        self.phi, self.b = self.x.copy(), np.zeros_like(self.x)

    def outer(self, key, default):
        return self.get("outer", {}).get(key, default)

    def exchange(self, w, u):
        eta, mu = self.outer("learning_rate", 0.7), self.outer("momentum", 0.9)
        delta = self.phi - mean_rows(self.x - u)
        self.b = mu * self.b + delta
        step = delta + mu * self.b if self.outer("nesterov", True) else self.b
        self.phi = self.phi - eta * step
        self.x = self.phi


class NoLoCo(DiLoCo):
    """Kolehmainen et al., NoLoCo, 2025."""

    def exchange(self, w, u):
        eta, mu = self.outer("learning_rate", 0.7), self.outer("momentum", 0.5)
        kappa = self.get("consensus_step", 0) or eta
        moved = w @ (self.x - u - self.phi)
        self.b = mu * self.b + eta * moved + kappa * (w @ self.phi - self.phi)
        self.phi = self.phi + self.b
        self.x = self.phi


class ElasticAveraging(Periodic):
    """Zhang, Choromanska, LeCun, NeurIPS 2015, synchronous EASGD; all start in one place."""

    def start(self):
        self.centre = self.x[:1].copy()

    def exchange(self, w, u):
        alpha = self.get("elastic", 0) or 0.9 / self.n
        apart = self.x - self.centre
        self.x = self.x - u - alpha * apart
        self.centre = self.centre + alpha * apart.sum(axis=0, keepdims=True)


class AllReduce(Algorithm):
    """C-SGD: the gradient is averaged before weight decay and momentum. How it is averaged changes
    nothing: also parameter-server."""

    def reduced(self, g):
        return mean_rows(g)

    def exchange(self, w, u):
        self.x = self.x - u


class DelayedAllReduce(AllReduce):
    """PIPE-SGD, Li et al. 2018: the mean gradient of D rounds ago."""

    def start(self):
        self.late = []

    def reduced(self, g):
        self.late.append(mean_rows(g))
        return self.late.pop(0) if len(self.late) > self.get("delay") else None


class CompressedAllReduce(Squeezing, AllReduce):
    """mem-SGD, EF-signSGD, BIT-SGD, QSGD and others: C-SGD of compressed gradients."""

    def reduced(self, g):
        return self.squeeze(g)


class CompressedLocalSgd(Squeezing, Algorithm):
    """Basu et al., Qsparse-local-SGD, NeurIPS 2019, Algorithm 1."""

    def start(self):
        super().start()
        self.common = self.x.copy()

    def exchange(self, w, u):
        self.x = self.x - u
        if self.exchanges % self.get("period") == 0:
            self.common = self.common + self.squeeze(self.x - self.common)
            self.x = self.common


class EcqSgd(Squeezing, GradientAlgorithm):
    """Wu et al., Error Compensated Quantized SGD, ICML 2018."""

    def exchange(self, w, g, rate):
        q = self.by_shard(g + self.get("alpha", 0.2) * self.error)
        self.error = self.get("beta", 0.9) * self.error + g - q
        self.x = self.x - rate * mean_rows(q)


class Gmc(Squeezing, GradientAlgorithm):
    """Zhao et al., Global Momentum Compression, 2019, with the last two models as printed."""

    def start(self):
        super().start()
        self.before = self.x

    def exchange(self, w, g, rate):
        moved = self.x - self.before
        pull = self.optimizer.get("momentum", 0) / rate * moved if rate else 0
        v = self.error + g - pull
        q = self.by_shard(v)
        self.error = v - q
        self.before, self.x = self.x, self.x - rate * mean_rows(q)


class Dgc(GradientAlgorithm):
    """Lin et al., Deep Gradient Compression, ICLR 2018, Algorithm 2. An epoch is a round."""

    zeros = ("u", "v")

    def kept(self):
        """k of this round."""
        t, last = self.exchanges - 1, self.get("compressor", {"name": "identity"})
        ks = [{"k": k} for k in self.get("warmup_k", [])]
        ks += [{"fraction": fraction} for fraction in self.get("warmup", [])]
        if t >= len(ks) and last["name"] == "identity":
            return self.d
        now = ks[t] if t < len(ks) else last
        return drawn.kept_entries(now.get("k"), now.get("fraction"), self.d)

    def exchange(self, w, g, rate):
        mu, nesterov = self.optimizer.get("momentum", 0), self.optimizer.get("nesterov")
        g = clipped(g, self.get("clip", 0) / np.sqrt(self.n))
        if self.kept() == self.d:
            g = mean_rows(g)
            self.u = mu * self.u + g
            self.x = self.x - rate * (g + mu * self.u if nesterov else self.u)
            return
        self.u = mu * self.u + g
        self.v = self.v + (g + mu * self.u if nesterov else self.u)
        q = self.watch(functools.partial(top_k, k=self.kept()))(self.v)
        self.u, self.v = np.where(q != 0, 0, self.u), np.where(q != 0, 0, self.v)
        self.x = self.x - rate * mean_rows(q)


class GTopK(AllReduce):
    """Shi et al., gTop-k S-SGD, 2019, Algorithms 2 to 4."""

    zeros = ("error",)

    def merged(self, s):
        power = 2 ** (self.n.bit_length() - 1)
        pairs = [(i - power, i) for i in range(power, self.n)]
        for h in (2**e for e in range(power.bit_length() - 1)):
            pairs += [(i, i + h) for i in range(0, power, 2 * h)]
        for to, other in pairs:
            s[to] = self.compress((s[to] + s[other])[None])[0]
        return s[0]

    def reduced(self, g):
        v = self.error + g
        s = self.compress(v)
        found = self.merged(s.copy())
        self.error = v - np.where(found != 0, s, 0)
        return found[None].repeat(self.n, axis=0) / self.n


def first_factors(count, seed=1, exchange=0, rank=0):
    """Normal numbers of a seed: Philox of (block, rank, exchange, purpose 10), Box-Muller."""
    key = (seed % (1 << 32), seed >> 32)
    tail = [rank, exchange % (1 << 32), exchange >> 32 << 16 | 10]
    found = []
    for block in range(count):
        words = drawn.philox(10, key, [block, *tail])
        u, v = ((words[i] << 32 | words[i + 1]) >> 11 for i in (0, 2))
        radius = np.sqrt(-2 * np.log(1 - u * 2.0**-53))
        found.append(radius * np.cos(2 * np.pi * v * 2.0**-53))
    return np.float32(found).astype(float)


def orthonormal(p):
    """Gram-Schmidt; a column that depends on those before it becomes 0."""
    p = p.copy()
    for c in range(p.shape[1]):
        v = p[:, c] - p[:, :c] @ (p[:, :c].T @ p[:, c])
        left = np.linalg.norm(v)
        p[:, c] = v / left if left > 1e-6 * np.linalg.norm(p[:, c]) else 0
    return p


class PowerSgd(AllReduce):
    """Vogels, Karimireddy, Jaggi, PowerSGD, NeurIPS 2019, Algorithms 1 and 2. The first `matrix`
    coordinates are a matrix."""

    def start(self):
        self.shape, self.rank = self.get("matrix"), self.get("rank", 2)
        self.error = np.zeros((self.n, *self.shape))
        self.q = first_factors(self.shape[1] * self.rank).reshape(self.rank, -1).T
        if self.get("start"):
            self.q = np.array(self.get("start"), dtype=float)

    def reduced(self, g):
        rows, columns = self.shape
        mean = mean_rows(g)
        longer = (rows + columns) * self.rank > rows * columns
        if longer or self.round <= self.get("warmup_rounds", 0):
            return mean
        m = g[:, : rows * columns].reshape(self.error.shape) + self.error
        p = orthonormal((m @ self.q).mean(axis=0))
        self.q = (m.transpose(0, 2, 1) @ p).mean(axis=0)
        found = p @ self.q.T
        self.error = m - found
        for c in np.flatnonzero((self.q == 0).all(axis=0)):
            fresh = first_factors(self.q.size, exchange=self.exchanges + 1)
            self.q[:, c] = fresh.reshape(self.rank, -1)[c]
        mean = mean.copy()
        mean[:, : rows * columns] = found.ravel()
        return mean


class PowerGossip(Algorithm):
    """Vogels, Karimireddy, Jaggi, PowerGossip, NeurIPS 2020, Algorithm 1. The first `matrix`
    coordinates are a matrix."""

    def start(self):
        self.shape, self.rank, self.kept = self.get("matrix"), self.get("rank", 2), {}

    def direction(self, i, j, odd):
        """Of the edge: V, with orthonormal columns."""
        rows, columns = self.shape
        v = self.kept.get((i, j, odd))
        if v is None and odd and self.get("start"):
            v = np.array(self.get("start"), dtype=float)
        v = np.zeros((columns if odd else rows, self.rank)) if v is None else v.copy()
        for c in np.flatnonzero((v == 0).all(axis=0)):
            turn = self.exchanges << 20 | j
            fresh = first_factors(v.size, exchange=turn, rank=i)
            v[:, c] = fresh.reshape(self.rank, -1)[c]
        return orthonormal(v)

    def exchange(self, w, u):
        y = self.x - u
        self.x, size = y.copy(), np.prod(self.shape)
        factored = self.rank <= min(self.shape)
        turn, slot = divmod(self.exchanges - 1, self.slots)
        odd = (turn + slot) % 2 == 0
        for i in range(self.n):
            for j in range(i + 1, self.n):
                if w[i, j] == 0:
                    continue
                low = y[j] - y[i]
                if factored:
                    d, v = low[:size].reshape(self.shape), self.direction(i, j, odd)
                    other = d @ v if odd else d.T @ v
                    self.kept[i, j, odd], self.kept[i, j, not odd] = v, other
                    low[:size] = (other @ v.T if odd else v @ other.T).ravel()
                self.x[i] += w[i, j] * low
                self.x[j] -= w[i, j] * low


class FetchSgd(GradientAlgorithm):
    """Rothchild et al., FetchSGD, ICML 2020, Algorithm 1 with section 5's zeroing of errors.
    margin: by how much, at least, what was kept was larger than what was not."""

    seed = 1

    @staticmethod
    def own_compressor(settings):
        return {"name": "top-k", "k": settings["sketch"]["k"]}

    def start(self):
        columns = self.get("sketch")["columns"]
        self.s = np.zeros((self.get("sketch")["rows"], columns, self.d))  # of a vector the table
        for row, table in enumerate(self.s):
            words = families.Stream(self.seed, row, 0, purpose=11)
            for j in range(self.d):
                place, odd = divmod(words.word(), 2)
                table[place * columns >> 31, j] = 1 - 2 * odd
        self.u = self.e = np.zeros(self.s.shape[:2])
        self.margin = math.inf

    def exchange(self, w, g, rate):
        self.u = self.get("beta", 0.9) * self.u + self.s @ g.mean(axis=0)
        self.e = self.e + rate * self.u
        estimates = np.median(np.einsum("rc,rcj->rj", self.e, self.s), axis=0)
        step = self.compress(estimates[None])
        least = abs(step[step != 0]).min(initial=math.inf)
        others = abs(estimates)[abs(estimates) < least]  # equal ones are equal in float32, too
        self.margin = min(self.margin, least - others.max(initial=0))
        self.e = np.where((self.s * step[0] != 0).any(axis=2), 0, self.e)
        self.x = self.x - step


class SignVote(Squeezing, GradientAlgorithm):
    """Bernstein et al., signSGD with Majority Vote, ICLR 2019, Algorithm 1."""

    zeros = ("m",)

    decouples = True

    @staticmethod
    def own_compressor(settings):
        return {"name": "scaled-sign"}

    def exchange(self, w, g, rate):
        beta = self.get("beta", 0)
        self.m = beta * self.m + (1 - beta) * g
        votes = np.where(self.compress(self.m) < 0, -1, 1).sum(axis=0)
        self.x = self.x - rate * (np.where(votes < 0, -1, 1) + self.decay * self.x)


class Ef21(Squeezing, AllReduce):
    """Richtarik, Sokolov, Fatkhullin, EF21, NeurIPS 2021, Algorithm 1."""

    zeros = ("known",)

    def reduced(self, g):
        self.known = self.known + self.by_shard(g - self.known)
        return mean_rows(self.known)


class LazyDifferences(Ef21):
    """Richtarik et al., 3PC, ICML 2022: who knows little new says nothing."""

    zeros = ("known", "before")

    def start(self):
        super().start()
        self.silent = np.zeros((self.n, 1), int)

    def speaks(self, g):
        unknown, moved = norms(g - self.known) ** 2, norms(g - self.before) ** 2
        self.before = g.copy()
        if self.exchanges == 0:
            return np.ones((self.n, 1), bool)
        return self.exceeds(unknown, self.get("trigger", 1) * moved)

    def learn(self, g):
        return self.known + self.by_shard(g - self.known)

    def reduced(self, g):
        speaks = self.speaks(g)
        self.silent += ~speaks
        self.known = np.where(speaks, self.learn(g), self.known)
        return mean_rows(self.known)


class LagWorkers(LazyDifferences):
    """Chen et al., LAG, NeurIPS 2018, LAG-WK, with the step of the mean loss."""

    def start(self):
        super().start()
        self.path = [self.x.copy()]

    share = 1

    def moved(self):
        self.path.append(self.x.copy())
        depth = self.get("depth", 10)
        steps = [b - a for a, b in zip(self.path, self.path[1:])][-depth:]
        return self.get("xi", self.share / depth) * sum(norms(step) ** 2 for step in steps)

    def speaks(self, g):
        return self.exceeds(self.rate**2 * norms(g - self.known) ** 2, self.moved())


class Laq(LagWorkers):
    """Sun et al., LAQ, NeurIPS 2019, Algorithm 2."""

    share = 0.8

    @staticmethod
    def own_compressor(settings):
        return {"name": "grid", "bits": settings.get("bits", 4)}

    def start(self):
        super().start()
        self.lost, self.quiet = np.zeros((self.n, 1)), np.zeros((self.n, 1), int)

    def speaks(self, g):
        q, moved = self.by_shard(g - self.known), self.moved()
        lost = norms(g - self.known - q) ** 2
        gain = norms(q) ** 2 - 3 * (lost + self.lost)
        speaks = self.exceeds(self.rate**2 * gain, moved) | (self.quiet >= self.get("clock", 100))
        self.quiet = np.where(speaks, 0, self.quiet + 1)
        self.lost = np.where(speaks, lost, self.lost)
        return speaks


class LazyGradients(LazyDifferences):
    """What is sent is the whole gradient."""

    def learn(self, g):
        return g


class Diana(Squeezing, GradientAlgorithm):
    """Mishchenko et al., Distributed Learning with Compressed Gradient Differences, 2019."""

    zeros = ("known", "buffer")

    def exchange(self, w, g, rate):
        q = self.by_shard(g - self.known)
        guess = mean_rows(self.known) + mean_rows(q)
        self.known = self.known + self.get("alpha", 1) * q
        self.buffer = self.get("beta", 0) * self.buffer + guess
        self.x = self.x - rate * self.buffer


class DoubleSqueeze(Squeezing, GradientAlgorithm):
    """Tang et al., DoubleSqueeze, ICML 2019. Every node is a worker; a shard's server averages all
    n messages."""

    def start(self):
        super().start()
        self.both_ways = self.keeps_errors = True

    def exchange(self, w, g, rate):
        self.x = self.x - rate * self.squeeze(g)


class OwnMoments(GradientAlgorithm):
    """Has Adam's moments and decay itself: g is the plain gradient."""

    decouples, zeros = True, ("m", "v")

    def start(self):
        self.b1, self.b2 = self.get("beta1", 0.9), self.get("beta2", 0.999)

    def take(self, g):
        self.m = self.b1 * self.m + (1 - self.b1) * g
        self.v = self.b2 * self.v + (1 - self.b2) * g**2

    def direction(self, m, v):
        return m / (np.sqrt(v) + self.get("epsilon", 1e-8)) + self.decay * self.x


class DAdam(OwnMoments):
    """Nazari et al., DADAM, 2019, without the maximum; bias-corrected."""

    def exchange(self, w, g, rate):
        t = self.exchanges
        self.take(g)
        step = self.direction(self.m / (1 - self.b1**t), self.v / (1 - self.b2**t))
        self.x = w @ (self.x - rate * step)


class DAmsgrad(OwnMoments):
    """Chen, Karimi, Zhao, Li 2021, Algorithm 3; what leaves has this round's maximum."""

    zeros = ("m", "v", "top", "u")

    def exchange(self, w, g, rate):
        self.take(g)
        before, self.top = self.top, np.maximum(self.top, self.v)
        self.u = w @ (self.u - before + self.top)
        mixed = w @ self.x
        step = self.m / np.sqrt(np.maximum(self.u, self.get("epsilon", 1e-8)))
        self.x = mixed - rate * (step + self.decay * mixed)


class OneBitAdam(OwnMoments, DoubleSqueeze):
    """Tang et al., 1-bit Adam, ICML 2021, Algorithm 1."""

    def start(self):
        OwnMoments.start(self)
        DoubleSqueeze.start(self)
        self.sizes, self.warm = {}, True

    def has_come_to_rest(self):
        """|u_t| >= ratio |u_{t-D}|, u being v without bias; looked at 25 times in D rounds."""
        t, memory, ratio = self.exchanges, round(1 / (1 - self.b2)), self.get("warmup_ratio", 0)
        stride = -(-memory // 25)
        if ratio == 0 or t % stride:
            return False
        self.sizes[t] = np.abs(self.v[0]).sum() / (1 - self.b2**t)
        before = self.sizes.get(t - -(-memory // stride) * stride, 0)
        return before > 0 and self.sizes[t] >= ratio * before

    def exchange(self, w, g, rate):
        unbounded = self.get("warmup_ratio", 0) > 0
        if self.warm and self.exchanges <= self.get("warmup_rounds", np.inf if unbounded else 1):
            self.take(mean_rows(g))
            self.warm = not self.has_come_to_rest()
        else:
            self.m = self.squeeze(self.b1 * self.m + (1 - self.b1) * g)
        self.x = self.x - rate * self.direction(self.m, self.v)


class CdSgd(GradientAlgorithm):
    """CD-SGD: compression, gradients one round late, an uncompressed correction every k-th round.

    The paper's round takes the gradient g_t at L_t, sends it, and has
        G_t = G_{t-1} - rate_t mean(sent of g_t),  L_{t+1} = G_{t-1} - local_rate g_t.
    L_{t+1} needs G_{t-1}, but not G_t. So what is sent of g_t may be under way until g_{t+1} is
    there: the exchange of g_t belongs to round t + 1, with the rate of round t, and the model
    after round t is G_{t-1}. What is sent of the last gradient never arrives.

    Warm-up rounds t <= W are C-SGD: g_t is taken at G_{t-1} and arrives in round t itself. So round
    W + 1 has nothing to receive, and the model after it is G_W, as after round W.

    x holds G, without what is under way."""

    def start(self):
        self.local_x = self.x.copy()
        self.residual = np.zeros_like(self.x)
        self.step = np.zeros_like(self.x)  # rate * mean of what is under way

    @staticmethod
    def own_compressor(settings):
        return {"name": "threshold", "threshold": settings["threshold"]}

    def at(self):
        # asked for before the round is counted
        return self.x if self.exchanges < self.get("warmup_rounds") else self.local_x

    def exchange(self, w, g, rate):
        count = self.exchanges - self.get("warmup_rounds") - 1
        self.x = self.x - self.step
        self.local_x = self.x - self.get("local_learning_rate", rate) * g
        if count < 0:
            self.x = self.x - rate * mean_rows(g)
        else:
            self.step = rate * mean_rows(self.sent(g, count))

    def sent(self, g, count):
        if count % self.get("correction_period") == 0:
            return g
        total = self.residual + g
        sent = self.compress(total)
        self.residual = total - sent
        return sent


NOT_COMPRESSED = {"name": "identity"}
COMPRESSED = {
    "d-psgd": MaskedGossip,
    "all-reduce": CompressedAllReduce,
    "parameter-server": CompressedAllReduce,
    "local-sgd": CompressedLocalSgd,
    "fedavg": CompressedFedAvg,
}
# By name, and by name and variant where that is not the usual one.
CLASSES = {
    "d-psgd": AdaptThenCombine,
    "d-psgd combine-while-adapt": CombineWhileAdapt,
    "dcd-psgd": Dcd,
    "ecd-psgd": Ecd,
    "choco-sgd": ChocoCompressThenMix,
    "choco-sgd mix-then-compress": ChocoMixThenCompress,
    "deep-squeeze": DeepSqueeze,
    "sgp": PushSum,
    "gradient-tracking": GradientTracking,
    "gradient-tracking combine-while-adapt": DIGing,
    "exact-diffusion": ExactDiffusion,
    "clipped-gossip": ClippedGossip,
    "clipped-gossip median": MedianGossip,
    "clipped-gossip trimmed-mean": TrimmedGossip,
    "beer": Beer,
    "lead": Lead,
    "relaysum": RelaySum,
    "moniqua": Moniqua,
    "qgm": QuasiGlobalMomentum,
    "decentlam": DecentLam,
    "all-reduce": AllReduce,
    "parameter-server": AllReduce,
    "double-squeeze": DoubleSqueeze,
    "local-sgd": LocalSgd,
    "gossip-pga": GossipPga,
    "slowmo": SlowMo,
    "diloco": DiLoCo,
    "noloco": NoLoCo,
    "fedavg": FedAvg,
    "easgd": ElasticAveraging,
    "d-adam": DAdam,
    "d-amsgrad": DAmsgrad,
    "one-bit-adam": OneBitAdam,
    "cd-sgd": CdSgd,
    "ecq-sgd": EcqSgd,
    "gmc": Gmc,
    "gtop-k": GTopK,
    "powersgd": PowerSgd,
    "power-gossip": PowerGossip,
    "dgc": Dgc,
    "fetch-sgd": FetchSgd,
    "sign-vote": SignVote,
    "ef21": Ef21,
    "lag-3pc": LazyGradients,
    "clag": LazyDifferences,
    "lag-wk": LagWorkers,
    "laq": Laq,
    "diana": Diana,
    "naive-compression": Naive,
}


def algorithm_class(settings):
    name = settings["name"]
    if settings.get("delay"):
        return DelayedAllReduce
    if "budget" in settings:
        return ChocoByLink
    if settings.get("switch_round"):
        return PostLocalSgd
    if "period_schedule" in settings:
        return GrowingPeriod if settings["period_schedule"] == "growing" else AdaComm
    if name in COMPRESSED and settings.get("compressor", NOT_COMPRESSED) != NOT_COMPRESSED:
        return COMPRESSED[name]
    return CLASSES.get(f"{name} {settings.get('variant')}", CLASSES[name])


# ---- a run ----


class Quadratic:
    """f_i(x) = 1/2 |A_i x - b_i|^2: A (n, m, d), b (n, m)."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def gradient(self, x):
        return np.einsum("imd,im->id", self.a, np.einsum("imd,id->im", self.a, x) - self.b)

    def losses(self, x):
        return ((np.einsum("imd,id->im", self.a, x) - self.b) ** 2).sum(axis=1) / 2

    def optimum(self):
        """Of the mean of the f_i."""
        d = self.a.shape[2]
        return np.linalg.lstsq(self.a.reshape(-1, d), self.b.ravel(), rcond=None)[0]


def norms(v):
    return np.linalg.norm(v, axis=1, keepdims=True)


def clipped(g, longest):
    return g * np.minimum(1, longest / norms(g)) if longest else g


class Adam:
    """Loshchilov, Hutter, Decoupled Weight Decay Regularization, ICLR 2019, Algorithm 2: the
    direction, bias-corrected, its decay apart."""

    def __init__(self, optimizer):
        self.b1, self.b2 = optimizer.get("beta1", 0.9), optimizer.get("beta2", 0.999)
        self.epsilon, self.decay = optimizer.get("epsilon", 1e-8), optimizer.get("weight_decay", 0)
        self.m = self.v = self.steps = 0

    def __call__(self, g, x):
        self.steps += 1
        self.m = self.b1 * self.m + (1 - self.b1) * g
        self.v = self.b2 * self.v + (1 - self.b2) * g**2
        m = self.m / (1 - self.b1**self.steps)
        v = self.v / (1 - self.b2**self.steps)
        return m / (np.sqrt(v) + self.epsilon) + self.decay * x


class Lars:
    """You, Gitman, Ginsburg, Large Batch Training of Convolutional Networks, 2017; one tensor."""

    def __init__(self, optimizer):
        self.trust, self.decay = optimizer.get("trust", 0.001), optimizer.get("weight_decay", 0)

    def __call__(self, g, x):
        share = self.trust * norms(x) / (norms(g) + self.decay * norms(x))
        return share * (g + self.decay * x)


class Lamb:
    """You et al., Large Batch Optimization for Deep Learning, ICLR 2020, Algorithm 2; one
    tensor."""

    def __init__(self, optimizer):
        self.adam, self.trust = Adam(optimizer), optimizer.get("trust", 1)

    def __call__(self, g, x):
        u = self.adam(g, x)
        return self.trust * norms(x) / norms(u) * u


class Decayed:
    """SGD's gradient of the regularized objective."""

    def __init__(self, optimizer):
        self.decay = optimizer.get("weight_decay", 0)

    def __call__(self, g, x):
        return g + self.decay * x


DIRECTIONS = {"sgd": Decayed, "adamw": Adam, "lars": Lars, "lamb": Lamb}


class Momentum:
    """mom(): PyTorch's SGD without dampening."""

    def __init__(self, optimizer):
        self.mu, self.nesterov = optimizer.get("momentum", 0), optimizer.get("nesterov", False)
        self.buffer = 0

    def __call__(self, g):
        self.buffer = self.mu * self.buffer + g
        return g + self.mu * self.buffer if self.nesterov else self.buffer


class Run:
    """One training run: step() is a round. watch: put around the
    compressor; exceeds: decides whether one number is above another."""

    def __init__(
        self,
        slots,
        algorithm,
        optimizer,
        problem,
        x0,
        watch=lambda compress: compress,
        exceeds=np.greater,
    ):
        self.slots, self.optimizer, self.problem = slots, optimizer, problem
        self.momentum = Momentum(optimizer)
        self.direction = DIRECTIONS[optimizer.get("name", "sgd")](optimizer)
        self.round = 0
        kind = algorithm_class(algorithm)
        periodic = getattr(kind, "is_periodic", False)
        steps = algorithm.get("period" if periodic else "local_steps", 1)
        self.local_steps = int(np.max(algorithm.get("local_epochs", 0) or steps))
        self.draws = drawn.Draws()
        if "share_scale" in algorithm.get("compressor", {}):
            # The scale goes before: to all at once, or to the servers and back.
            self.draws.stage = 1 if algorithm["name"] == "all-reduce" else 2
        self.compressor, self.watch = kind.own_compressor(algorithm), watch
        self.state = kind(x0, algorithm, watch(compressor(self.compressor, self.draws)))
        self.state.watch, self.state.slots = watch, len(slots)
        self.state.optimizer, self.state.momentum = optimizer, self.momentum
        self.state.exceeds = exceeds

    def step(self):
        state = self.state
        self.round += 1
        self.draws.exchange = -(-self.round // self.local_steps)
        rate = dpsgd.learning_rate(self.optimizer, self.round)
        state.round, state.rate = self.round, rate
        state.decay = self.optimizer.get("weight_decay", 0)
        state.loss = self.problem.losses(state.at())
        g = clipped(self.problem.gradient(state.at()), self.optimizer.get("clip_norm"))
        g = state.reduced(g)
        if g is None:
            state.exchanges += 1
            return
        plain = self.optimizer.get("name", "sgd") == "sgd"
        if not getattr(state, "decouples", False):
            g = self.direction(g, state.decays() if plain else state.at())
        update = rate * self.momentum(g) if state.takes_momentum else None
        if self.round % self.local_steps != 0:
            state.local(update)
            return
        state.exchanges += 1
        if "schedule" in self.compressor:
            now = compressor(self.compressor, self.draws, state.exchanges)
            state.compress = self.watch(now)
        w = self.slots[(state.exchanges - 1) % len(self.slots)]
        if state.takes_momentum:
            state.exchange(w, update)
        else:
            state.exchange(w, g, rate)

    def models(self):
        return self.state.models()


def history(rounds, *arguments, **more):
    """Models (n, d) after rounds 0, 1, ..., rounds, and push-sum weights (n) beside each (ones
    where there are none)."""
    run = Run(*arguments, **more)
    models, weights = [run.models().copy()], [np.ones(len(run.state.x))]
    for _ in range(rounds):
        run.step()
        models.append(run.models().copy())
        weights.append(getattr(run.state, "weight", np.ones(len(run.state.x))).ravel().copy())
    return models, weights


# ---- the reference against itself ----


def close(a, b, tolerance=1e-11):
    return all(np.allclose(x, y, rtol=0, atol=tolerance) for x, y in zip(a, b))


def d2(w, problem, x, rate):
    """Models of Tang et al., D2: Decentralized Training over Decentralized Data, ICML 2018, as
    printed there."""
    models, before, last = [x], None, None
    for _ in range(50):
        g = problem.gradient(x)
        moved = x if before is None else 2 * x - before + rate * last
        before, last, x = x, g, w @ (moved - rate * g)
        models.append(x)
    return models


def self_check():
    """(what, whether it holds)"""
    a, b, x0 = dpsgd.problem(8, 10, 20, False, seed=5)
    problem, ring = Quadratic(a, b), dpsgd.metropolis(8, dpsgd.ring(8))

    def run(settings, start=x0, slots=(ring,), rounds=50, of=problem):
        return history(rounds, slots, settings, {"learning_rate": 0.1}, of, start)[0]

    same, roomy = x0[:1].repeat(8, axis=0), {"rows": 3, "columns": 9999, "k": 20}
    yield "FetchSGD without collisions, all kept = all-reduce", close(
        run({"name": "fetch-sgd", "beta": 0, "sketch": roomy}, same),
        run({"name": "all-reduce"}, same),
    )
    # L_{t+1} = G_{t-1} - rate g_t = G_t; after a round the model is SGD's of the round before
    cd_sgd = {"name": "cd-sgd", "warmup_rounds": 0, "correction_period": 1, "threshold": 0.1}
    alone = {"start": x0[:1], "slots": [np.eye(1)], "of": Quadratic(a[:1], b[:1])}
    sgd = run({"name": "all-reduce"}, **alone)
    late = run({**cd_sgd, "local_learning_rate": 0.1}, **alone)
    yield "CD-SGD alone and always correct = SGD", close(late, [sgd[0], *sgd[:-1]])
    w = (np.eye(8) + 2 * ring) / 3
    plain = run({"name": "exact-diffusion", "matrix": "plain"}, slots=[w])
    yield "D2 = exact diffusion with the plain matrix", close(plain, d2(w, problem, x0, 0.1))
    x1 = x0 - 0.1 * problem.gradient(x0)
    yield "LEAD, not compressed = exact diffusion after its first step", close(
        run({"name": "lead"})[1:], run({"name": "exact-diffusion"}, x1, rounds=49)
    )
    x2 = ring @ (x1 - 0.1 * problem.gradient(x1))
    two = run({"name": "d-psgd", "local_steps": 2}, slots=[ring, np.eye(8)], rounds=2)
    yield "local steps: two of D-PSGD with H = 2", close(two, [x0, x1, x2])
