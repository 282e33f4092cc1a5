"""The graph families once more, from their definitions, as dense numpy matrices: W[i, j] is what i
gives to what j sent, one matrix for each slot.

Nothing of Starling's is used. Random families follow the drawing that docs/topology.md promises:
Philox4x32-10 keyed by the seed, counted by
(block, stream, attempt, purpose 4).
"""
import functools
import itertools
import math

import dpsgd
import numpy as np
from drawn import philox

# ---- random numbers ----


class Stream:
    """Words of the stream (seed, stream, attempt), for graphs unless `purpose` says else."""

    def __init__(self, seed, stream, attempt, purpose=4):
        self.key = (seed % (1 << 32), seed >> 32)
        self.tail = [stream, attempt % (1 << 32), (attempt >> 32) << 16 | purpose]
        self.words = self.draw()

    def draw(self):
        for block in itertools.count():
            yield from philox(10, self.key, [block, *self.tail])

    def word(self):
        return next(self.words)

    def below(self, n):
        """Lemire 2019."""
        while True:
            high, low = divmod(self.word() * n, 1 << 32)
            if low >= (1 << 32) % n:
                return high

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            j = self.below(i)
            items[i - 1], items[j] = items[j], items[i - 1]


# ---- weights ----


def metropolis(n, edges):
    """Of edges that may be listed both ways."""
    return dpsgd.metropolis(n, list(map(tuple, {frozenset(edge) for edge in edges})))


def evenly(n, sends, axis=1):
    """sends: (from, to). Rows that split evenly, or columns, as push-sum's do (axis 0)."""
    a = np.eye(n)
    for i, j in sends:
        a[j, i] = 1
    return a / a.sum(axis=axis, keepdims=True)


def is_connected(matrices):
    """Along the directions, over the whole schedule."""
    n = len(matrices[0])
    reach = np.eye(n) + sum(np.abs(w) > 0 for w in matrices)
    for _ in range(max(1, math.ceil(math.log2(n)))):
        reach = ((reach @ reach) > 0).astype(float)
    return bool((reach > 0).all())


# ---- one undirected graph ----


def ring_edges(n):
    return [(i, (i + 1) % n) for i in range(n)] if n > 2 else [(0, 1)][: n - 1]


def path_edges(n):
    return [(i, i + 1) for i in range(n - 1)]


def star_edges(n):
    return [(0, i) for i in range(1, n)]


def complete_edges(nodes):
    return list(itertools.combinations(nodes, 2))


def mesh(sides, wraps):
    """Nodes are numbered with the last coordinate first."""
    number = {at: i for i, at in enumerate(itertools.product(*map(range, sides)))}
    for at, i in number.items():
        for d, side in enumerate(sides):
            ahead = at[d] + 1
            if ahead == side and not wraps:
                continue
            j = number[at[:d] + (ahead % side,) + at[d + 1 :]]
            if i != j:
                yield i, j


def squarest(n):
    a = max(a for a in range(1, math.isqrt(n) + 1) if n % a == 0)
    return [a, n // a]


def circulant_edges(n, offsets):
    return [(i, (i + offset) % n) for offset in offsets for i in range(n)]


def clusters_edges(n, clusters, degree=None, joined="ring", bridges=1):
    """(edges within, bridges)"""
    size = n // clusters
    degree = size - 1 if degree is None else degree
    offsets = list(range(1, degree // 2 + 1)) + [size // 2] * (degree % 2)
    within = [
        (c * size + i, c * size + j)
        for c in range(clusters)
        for i, j in circulant_edges(size, offsets)
    ]
    pairs = {
        "ring": ring_edges,
        "path": path_edges,
        "star": star_edges,
        "complete": lambda c: complete_edges(range(c)),
    }[joined](clusters)
    used = [0] * clusters
    between = []
    for a, b in pairs:
        for _ in range(bridges):
            between.append((a * size + used[a] % size, b * size + used[b] % size))
            used[a] += 1
            used[b] += 1
    return within, between


def clusters(n, bridge_every=1, **more):
    within, between = clusters_edges(n, **more)
    return [metropolis(n, within)] * (bridge_every - 1) + [metropolis(n, within + between)]


UNDIRECTED = {
    "ring": ring_edges,
    "path": path_edges,
    "grid": lambda n, sides=None: list(mesh(sides or squarest(n), False)),
    "torus": lambda n, sides=None: list(mesh(sides or squarest(n), True)),
    "hypercube": lambda n: [(i, i ^ 1 << b) for i in range(n) for b in range(n.bit_length() - 1)],
    "star": star_edges,
    "wheel": lambda n: star_edges(n) + [(1 + i, 1 + j) for i, j in ring_edges(n - 1)],
    "complete": lambda n: complete_edges(range(n)),
    "complete-bipartite": lambda n, part=None: list(
        itertools.product(range(part or n // 2), range(part or n // 2, n))
    ),
    "k-ary-tree": lambda n, arity=2: [
        (i, arity * i + c) for i in range(n) for c in range(1, arity + 1) if arity * i + c < n
    ],
    "barbell": lambda n, clique=None: complete_edges(range(clique or n // 2))
    + complete_edges(range(n - (clique or n // 2), n))
    + [(i, i + 1) for i in range((clique or n // 2) - 1, n - (clique or n // 2))],
    "lollipop": lambda n, clique=None: complete_edges(range(clique or n // 2))
    + [(i, i + 1) for i in range((clique or n // 2) - 1, n - 1)],
    "circulant": lambda n, offsets: circulant_edges(n, offsets),
    "symmetric-exponential": lambda n: circulant_edges(
        n, [1 << k for k in range(n.bit_length()) if 1 << k <= n // 2]
    ),
}

# ---- random graphs: edges, or None where the drawing has to begin again ----


def random_regular_edges(n, degree, seed, attempt):
    """Stubs in a random order, two by two; pairs that are loops or stand twice change ends with
    pairs drawn at random."""
    for trial in range(100):
        stream = Stream(seed, trial, attempt)
        stubs = [s // degree for s in range(n * degree)]
        stream.shuffle(stubs)
        pairs = [[stubs[2 * p], stubs[2 * p + 1]] for p in range(n * degree // 2)]

        def times(a, b):
            return sum({a, b} == set(pair) if a != b else pair == [a, a] for pair in pairs)

        def repair(p):
            for _ in range(200 * degree):
                if pairs[p][0] != pairs[p][1] and times(*pairs[p]) == 1:
                    return True
                q = stream.below(len(pairs))
                (a, b), (c, e) = pairs[p], pairs[q]
                if a != e and c != b and times(a, e) == 0 and times(c, b) == 0:
                    pairs[p], pairs[q] = [a, e], [c, b]
            return False

        if all(map(repair, range(len(pairs)))):
            return pairs
    return None


def erdos_renyi_edges(n, probability, seed, attempt):
    """Pairs (0,1), (0,2), (1,2), (0,3), ...; how many are passed over is a number whose bits are
    drawn one by one."""
    stream = Stream(seed, 0, attempt)
    thresholds = []
    x = 1 - probability
    while x / (1 + x) >= 2.0**-32 and len(thresholds) < 48:
        thresholds.append(int(x / (1 + x) * 2**32))
        x *= x
    pairs = [(i, j) for j in range(n) for i in range(j)]
    edges, at = [], -1
    while True:
        at += 1 + sum(
            (stream.word() < threshold) << bit for bit, threshold in enumerate(thresholds)
        )
        if at >= len(pairs):
            return edges
        edges.append(pairs[at])


def watts_strogatz_edges(n, degree, probability, seed, attempt):
    stream = Stream(seed, 0, attempt)
    laps = [[[i, (i + k) % n] for i in range(n)] for k in range(1, degree // 2 + 1)]
    present = {frozenset(edge) for lap in laps for edge in lap}
    for lap in laps:
        for edge in lap:
            if stream.word() >= int(probability * 2**32):
                continue
            for _ in range(100):
                other = stream.below(n)
                if other != edge[0] and frozenset((edge[0], other)) not in present:
                    present.remove(frozenset(edge))
                    edge[1] = other
                    present.add(frozenset(edge))
                    break
    return [edge for lap in laps for edge in lap]


def random_geometric_edges(n, radius, seed, attempt):
    stream = Stream(seed, 0, attempt)
    at = [(stream.word() >> 1, stream.word() >> 1) for _ in range(n)]
    limit = int(radius * 2**31) ** 2
    return [
        (i, j)
        for i, j in complete_edges(range(n))
        if (at[i][0] - at[j][0]) ** 2 + (at[i][1] - at[j][1]) ** 2 <= limit
    ]


def drawn(edges_of, n, seed=1, **more):
    """The first connected graph of the seed."""
    for attempt in range(100):
        w = metropolis(n, edges_of(n, seed=seed, attempt=attempt, **more))
        if is_connected([w]):
            return [w]
    return None


# ---- one directed graph ----


def shift(n, offset):
    """i sends to i + offset."""
    return np.roll(np.eye(n), offset, axis=0)


def de_bruijn(n, arity=2):
    w = np.zeros((n, n))
    for i, k in itertools.product(range(n), range(arity)):
        w[(arity * i + k) % n, i] += 1 / arity
    return [w]


def kautz(n, arity=2):
    w = np.zeros((n, n))
    for i, k in itertools.product(range(n), range(1, arity + 1)):
        w[(-arity * i - k) % n, i] += 1 / arity
    return [w]


def random_offsets(n, most, count, seed):
    stream = Stream(seed, 0, 0)
    offsets = list(range(1, most + 1))
    for k in range(count):
        other = k + stream.below(most - k)
        offsets[k], offsets[other] = offsets[other], offsets[k]
    return offsets[:count]


def basis(n, offset):
    return np.eye(n) / n + (n - 1) / n * shift(n, offset)


def u_equistatic(n, degree, seed=1):
    return [
        sum(basis(n, u) + basis(n, u).T for u in random_offsets(n, (n - 1) // 2, degree // 2, seed))
        / degree
    ]


# ---- schedules ----


def hyper_cuboid(n, sides=None):
    sides, slots = sides or prime_factors(n), []
    for d in reversed(range(len(sides))):
        factors = [np.full((s, s), 1 / s) if k == d else np.eye(s) for k, s in enumerate(sides)]
        slots.append(functools.reduce(np.kron, factors))
    return slots


def matchings(n):
    return [metropolis(n, [(i, (i + 1) % n) for i in range(first, n, 2)]) for first in (0, 1)]


def random_matching(n, period=32, seed=1):
    slots = []
    for k in range(period):
        order = list(range(n))
        Stream(seed, k, 0).shuffle(order)
        slots.append(metropolis(n, list(zip(order[0::2], order[1::2]))))
    return slots


def epidemic(n, degree, seed=1, rounds=16):
    """The first rounds of a schedule that never repeats. Places on a ring by swap-or-not (Hoang,
    Morris, Rogaway 2012): swap k of 32 exchanges x and mirror - x, or leaves both, as the bit of
    the larger says."""
    slots = []
    for r in range(1, rounds + 1):
        places = []
        for x in range(n):
            for k in range(32):
                other = (Stream(seed, k, r).below(n) - x) % n
                block, bit = divmod(max(x, other), 128)
                words = philox(10, (seed, 0), [1 + block, k, r, 4])
                x = other if words[bit // 32] >> bit % 32 & 1 else x
            places.append(x)
        at, even = np.argsort(places), n // 2 * 2
        pairs = [(p, (p + u) % n) for u in range(1, degree // 2 + 1) for p in range(n)]
        pairs += [(p, p + even // 2) for p in range(even // 2) if degree % 2 == 1]
        pairs = [(at[p], at[q]) for p, q in pairs]
        everybody = itertools.combinations(range(n), 2)
        slots.append(metropolis(n, pairs if degree + 1 < n else everybody))
    return slots


def factors(n, most):
    """As few factors of n as can be, none above most, and of those the one with the largest first;
    None if there are none."""
    for count in range(n.bit_length() + 1):
        options = [
            f
            for f in itertools.combinations_with_replacement(range(most, 1, -1), count)
            if math.prod(f) == n
        ]
        if options:
            return list(max(options))
    return None


def cuboid(n, k, nodes):
    """Lists of groups of nodes that average, one list for each round."""
    rounds, place = [], 1
    for side in factors(n, k + 1):
        groups = {}
        for i in range(n):
            groups.setdefault(i - i // place % side * place, []).append(nodes[i])
        rounds.append(list(groups.values()))
        place *= side
    return rounds


def simple_base(n, k, nodes):
    """Takezawa et al. 2023, algorithm 2: [(groups that average, [(i, j, weight)])], one for each
    round."""
    parts, first, block = [], 0, (k + 1) ** int(math.log(n + 0.5, k + 1))
    while first < n:
        size = (n - first) // block * block
        if size:
            blocks = [nodes[at : at + block] for at in range(first, first + size, block)]
            parts.append((nodes[first : first + size], blocks, n - first))
        first, block = first + size, block // (k + 1)
    gather = len(cuboid(len(parts[0][0]), k, parts[0][0]))
    rounds = []
    for r in range(gather):
        whole = [cuboid(len(part), k, part) for part, _, _ in parts]
        rounds.append(([group for one in whole if one for group in one[r % len(one)]], []))
    if len(parts) == 1:
        return rounds
    for r in range(1 + len(cuboid(len(parts[0][1][0]), k, parts[0][1][0]))):
        groups, links = [], []
        if r < len(parts) - 1:
            part, blocks, rest = parts[r]
            later = [node for after, _, _ in parts[r + 1 :] for node in after]
            links = [
                (node, one[t], len(one) / rest) for t, node in enumerate(later) for one in blocks
            ]
            unmet = [node for one in blocks for node in one[len(later) :]]
            clique = min(k + 1, 32)
            groups += [unmet[at : at + clique] for at in range(0, len(unmet), clique)]
        for l, (part, blocks, _) in enumerate(parts):
            done = r - l - (l < len(parts) - 1)
            for one in blocks if done >= 0 else []:
                inner = cuboid(len(one), k, one)
                groups += inner[done % len(inner)] if inner else []
        rounds.append((groups, links))
    return rounds


def base_k(n, peers=1):
    """Takezawa et al. 2023, algorithm 3."""
    smooth = math.prod(p for p in prime_factors(n) if p <= peers + 1)
    size = n // smooth
    grouped = [
        simple_base(size, peers, list(range(g * size, g * size + size))) if size > 1 else []
        for g in range(smooth)
    ]
    rounds = [
        ([group for one in slot for group in one[0]], [link for one in slot for link in one[1]])
        for slot in zip(*grouped)
    ]
    across = [cuboid(smooth, peers, list(range(i, n, size))) for i in range(size)]
    rounds += [([group for one in slot for group in one], []) for slot in zip(*across)]
    alone = simple_base(n, peers, list(range(n)))
    slots = []
    for groups, links in alone if len(alone) < len(rounds) else rounds:
        w = np.zeros((n, n))
        for group in groups:
            for i, j in itertools.permutations(group, 2):
                w[i, j] = 1 / len(group)
        for i, j, weight in links:
            w[i, j] = w[j, i] = weight
        slots.append(w + np.diag(1 - w.sum(axis=1)))
    return slots


def prime_factors(n):
    found = []
    for p in range(2, n + 1):
        while n % p == 0:
            found.append(p)
            n //= p
    return found


def od_equidyn(n, period=32, seed=1):
    return [
        np.eye(n) / 2 + basis(n, 1 + Stream(seed, k, 0).below(n - 1)) / 2 for k in range(period)
    ]


def ou_equidyn(n, period=32, seed=1):
    slots = []
    for k in range(period):
        stream = Stream(seed, k, 0)
        offset, first = 1 + stream.below(n - 1), stream.below(n)
        partner = {}
        for i in [(first + step) % n for step in range(n)]:
            j = (i + offset) % n
            if i not in partner and j not in partner:
                partner[i], partner[j] = j, i
        w = np.eye(n)
        for i, j in partner.items():
            w[i, i], w[i, j] = 1 / 2 + 1 / (2 * n), (n - 1) / (2 * n)
        slots.append(w)
    return slots


def exponents(n):
    return [1 << k for k in range((n - 1).bit_length())]


MATRICES = {
    **{
        name: lambda n, edges_of=edges_of, **more: [metropolis(n, edges_of(n, **more))]
        for name, edges_of in UNDIRECTED.items()
    },
    "clusters": clusters,
    "random-regular": functools.partial(drawn, random_regular_edges),
    "erdos-renyi": functools.partial(drawn, erdos_renyi_edges),
    "watts-strogatz": functools.partial(drawn, watts_strogatz_edges),
    "random-geometric": functools.partial(drawn, random_geometric_edges),
    "directed-ring": lambda n: [(np.eye(n) + shift(n, 1)) / 2],
    "static-exponential": lambda n: [
        evenly(n, [(i, (i + u) % n) for u in exponents(n) for i in range(n)])
    ],
    "de-bruijn": de_bruijn,
    "kautz": kautz,
    "d-equistatic": lambda n, degree, seed=1: [
        sum(basis(n, u) for u in random_offsets(n, n - 1, degree, seed)) / degree
    ],
    "u-equistatic": u_equistatic,
    "one-peer-exponential": lambda n: [(np.eye(n) + shift(n, u)) / 2 for u in exponents(n)],
    "one-peer-hypercube": lambda n: [
        metropolis(n, [(i, i ^ u) for i in range(n)]) for u in exponents(n)
    ],
    "hyper-cuboid": hyper_cuboid,
    "alternating-matchings": matchings,
    "random-matching": random_matching,
    "base-k": base_k,
    "od-equidyn": od_equidyn,
    "ou-equidyn": ou_equidyn,
    "epidemic": epidemic,
}
