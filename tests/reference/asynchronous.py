"""Algorithms whose nodes go at their own times, once more in float64 numpy, written from the papers
and from docs only: it shares no code with Starling.

Time is in nanoseconds. times[i](k): how long node i's k-th gradient takes, and 1 at least. Links
take `latency` and nothing else. At one instant what has come counts first, then each gradient that
ends, by rank, with all that it sets off where links take no time; then who has waited goes on, by
rank.

Each function returns, for each node, its models after 0, 1, 2, ... of its own gradients.
"""
import heapq

import numpy as np
from drawn import philox_words

PARTNER = 13  # the purpose of random numbers that choose one
ARRIVES, ENDS = range(2)


class Clock:
    """What happens when: at one instant by kind, by node, and then as it came."""

    def __init__(self):
        self.heap, self.count = [], 0

    def push(self, when, kind, node, what=None):
        self.count += 1
        heapq.heappush(self.heap, (when, kind, node, self.count, what))

    def instants(self):
        while self.heap:
            yield self.heap[0][0]

    def at(self, now, kinds=(ARRIVES, ENDS)):
        """(kind, node, what) of all that happens now, and of what that sets off now."""
        while self.heap and self.heap[0][0] == now and self.heap[0][1] in kinds:
            _, kind, node, _, what = heapq.heappop(self.heap)
            yield kind, node, what


class Steps:
    """Gradients of f_i(x) = 1/2 |A_i x - b_i|^2, and PyTorch's SGD, for one node."""

    def __init__(self, a, b, optimizer):
        self.a, self.b = a, b
        self.rate, self.momentum = optimizer["learning_rate"], optimizer.get("momentum", 0)
        self.decay, self.nesterov = optimizer.get("weight_decay", 0), optimizer.get("nesterov")
        self.m = 0

    def gradient(self, x):
        return self.a.T @ (self.a @ x - self.b)

    def step(self, g, x):
        g = g + self.decay * x
        self.m = self.momentum * self.m + g
        return self.rate * (g + self.momentum * self.m if self.nesterov else self.m)


def steps_of(problem, optimizer):
    a, b, x0 = problem
    return [Steps(a[i], b[i], optimizer) for i in range(len(x0))]


def partner(pairing, seed, rank, event, neighbours):
    """Lemire 2019: the first product whose low half is not among the few that are too many."""
    if pairing == "cyclic":
        return neighbours[(event - 1) % len(neighbours)]
    count = len(neighbours)
    products = philox_words(10, seed, event, PARTNER, rank + 1, 4)[rank] * np.uint64(count)
    fair = (products & np.uint64(0xFFFFFFFF)) >= (1 << 32) % count
    return neighbours[int(products[fair][0] >> np.uint64(32))]


def ad_psgd(neighbours, problem, optimizer, rounds, times, pairing="cyclic", asks=None, every=1,
            beside=False, seed=1, changes=()):
    """Lian et al. 2018, Algorithm 1, over links that take no time: nobody is ever busy. asks: who
    does; every: gradients of one ask. changes: (round, who goes, who comes, neighbours then), when
    the first node has done all rounds before; then models are by round, without those that others
    had not come to when their node went."""
    x = problem[2].astype(float).copy()
    n, nodes = len(x), steps_of(problem, optimizer)
    asks = range(n) if asks is None else asks
    at, done, events = x.copy(), [0] * n, [0] * n
    models = [{0: x[i].copy()} for i in range(n)]
    there, changes, lives = set(range(n)), list(changes), [0] * n

    def average(i, k):
        if i in asks and k % every == 0:
            events[i] += 1
            j = partner(pairing, seed, i, events[i], neighbours[i])
            x[i] = x[j] = (x[i] + x[j]) / 2

    def begin(now, i):
        at[i] = x[i]
        if beside:
            average(i, done[i] + 1)
        clock.push(now + times[i](done[i] + 1), ENDS, i, lives[i])

    def end(now, i):
        g = nodes[i].gradient(at[i])
        done[i] += 1
        if not beside:
            average(i, done[i])
        x[i] = x[i] - nodes[i].step(g, x[i])
        models[i][done[i]] = x[i].copy()
        if done[i] < rounds:
            begin(now, i)

    def change(now, first, gone, come, near):
        whole = min(done[i] for i in there)
        for i in gone:
            lives[i] += 1
            models[i] = {r: model for r, model in models[i].items() if r <= whole}
        old = there - set(gone)
        there.intersection_update(old)
        neighbours[:] = near
        for i in come:
            x[i] = x[min(old.intersection(near[i]) or old)]
            done[i], events[i], nodes[i].m = first - 1, 0, 0
        for i in come:
            there.add(i)
            begin(now, i)

    clock = Clock()
    for i in range(n):
        begin(0, i)
    for now in clock.instants():
        for _, i, life in clock.at(now):
            if life == lives[i]:
                end(now, i)
        while changes and max(done[i] for i in there) + 1 >= changes[0][0]:
            change(now, *changes.pop(0))
    return models


def stale_d_psgd(w, problem, optimizer, rounds, times, staleness, latency=0):
    """After Luo et al. 2019: c_j = min(t, newest of j), once all newest are at least t - s."""
    x = problem[2].astype(float).copy()
    n, nodes = len(x), steps_of(problem, optimizer)
    sent = [[x[i].copy()] for i in range(n)]  # u_i^0, u_i^1, ...
    newest = [{j: 0 if latency == 0 else -1 for j in np.flatnonzero(w[i]) if j != i}
              for i in range(n)]
    models = [[x[i].copy()] for i in range(n)]
    clock, waiting = Clock(), set()
    for i in range(n):
        clock.push(times[i](1), ENDS, i)
        for j in newest[i] if latency > 0 else ():
            clock.push(latency, ARRIVES, i, (j, 0))

    def publish(now, i):
        g = nodes[i].gradient(x[i])
        sent[i].append(x[i] - nodes[i].step(g, x[i]))
        version = len(sent[i]) - 1
        waiting.add(i)
        for j in range(n):
            if i in newest[j] and latency > 0:
                clock.push(now + latency, ARRIVES, j, (i, version))
            elif i in newest[j]:
                newest[j][i] = version

    def go_on(now, i):
        t = len(sent[i]) - 1
        if min(newest[i].values()) < max(0, t - staleness):
            return
        waiting.discard(i)
        x[i] = w[i, i] * sent[i][t]
        x[i] += sum(w[i, j] * sent[j][min(t, v)] for j, v in newest[i].items())
        models[i].append(x[i].copy())
        if t < rounds:
            clock.push(now + times[i](t + 1), ENDS, i)

    for now in clock.instants():
        for kind, i, what in clock.at(now):
            if kind == ENDS:
                publish(now, i)
            else:
                newest[i][what[0]] = what[1]
        for i in sorted(waiting):
            go_on(now, i)
    return models


def overlapping_sgp(slots, problem, optimizer, rounds, tau):
    """Assran et al. 2019 with a fixed delay: what was sent in round t - tau is added in round t. It
    does not hang on time. Also the push-sum weights, and what is on its way at the end."""
    x = problem[2].astype(float).copy()
    n, nodes = len(x), steps_of(problem, optimizer)
    numerator, weight = x.copy(), np.ones(n)
    sent, models = [], [[x[i].copy()] for i in range(n)]
    for t in range(1, rounds + 1):
        p = slots[(t - 1) % len(slots)]
        half = np.array([numerator[i] - nodes[i].step(nodes[i].gradient(x[i]), numerator[i])
                         for i in range(n)])
        sent.append((p - np.diag(np.diag(p)), half, weight))
        numerator, weight = np.diag(p)[:, None] * half, np.diag(p) * weight
        if t > tau:
            others, then, w = sent[t - tau - 1]
            numerator, weight = numerator + others @ then, weight + others @ w
        x = numerator / weight[:, None]
        for i in range(n):
            models[i].append(x[i].copy())
    return models, weight, sum((p @ w).sum() for p, _, w in sent[rounds - tau:]) if tau else 0


def served(
    problem, optimizer, rounds, times, staleness, server=0, latency=0, in_turn=False, every=1,
    backup=None, most=None, leads=None, compress=None, feedback=True,
):
    """Ho et al. 2013; staleness None: unbounded. most: of a range of bounds (Zhao et al. 2019).
    leads: gets by how much nodes were ahead as they went on. compress: of what is committed; with
    `feedback` the rest of it is committed with the next (Stich, Cordonnier, Jaggi 2018). in_turn:
    Chen, Wang, Li 2019. Commits change the server's model at once; a node has the model when its
    next gradient may begin, and its round is over then. every: Downpour's local steps, 1/n of whose
    way is committed (Dean et al. 2012). backup: so many of a round's gradients come to nothing, the
    last ones (Chen et al. 2016)."""
    x0 = problem[2].astype(float)
    x, n, nodes = x0[server].copy(), len(x0), steps_of(problem, optimizer)
    pulled, at, models = [None] * n, [None] * n, [[x0[i].copy()] for i in range(n)]
    clocks, waits, early, turn = [0] * n, set(range(n)), {}, 0
    rest = np.zeros(x0.shape)
    seen, extra = [[] for _ in range(n)], [0] * n  # when the last two commits of each came
    version, held, before = 0, [0] * n, set()  # of the model; that nodes have; who was early before
    clock = Clock()

    def message(i, way):
        if compress is None:
            return way
        sent = compress((way + rest[i])[None])[0]
        rest[i] = way + rest[i] - sent if feedback else 0
        return sent

    def later(i):
        return 0 if i == server else latency

    def commit(now, i, way):
        nonlocal x
        x = x - way / n
        clocks[i] += 1
        waits.add(i)
        seen[i] = [*seen[i][-1:], now]
        if most is not None and extra[i] == 0:
            extra[i] = more(i)

    def more(i):
        """Zhao et al., Algorithm 2: how many gradients further node i then waits least."""
        lead, last = clocks[i] - min(clocks), lambda j: seen[j][-1]
        behind = [j for j in range(n) if clocks[j] == min(clocks)]
        if not staleness < lead <= most or clocks[i] < max(clocks):
            return 0
        if any(len(seen[j]) < 2 for j in [i, *behind]):
            return 0
        own = seen[i][1] - seen[i][0]
        slowest = max(behind, key=lambda j: 2 * seen[j][1] - seen[j][0])
        each = seen[slowest][1] - seen[slowest][0]
        theirs = last(slowest) + each * np.arange(1, most - lead + 3)
        ours = last(i) + own * np.arange(most - lead + 2)
        return int(abs(theirs[None] - ours[:, None]).min(axis=1).argmin())

    def end(i):
        del early[i]
        clocks[i] += 1
        waits.add(i)

    def take_batch():
        nonlocal x, version, before
        active = sum(clock < rounds for clock in clocks)
        size = active - backup if active > backup else min(active, 1)
        current = [i for i in sorted(early) if held[i] == version]
        applied = bool(current) and len(current) >= size
        if applied:
            current.sort(key=lambda i: i not in before)
            x = x - sum(early[i] for i in sorted(current[:size])) / (n - backup)
            version += 1
        for i in [i for i in early if held[i] != version]:
            end(i)
        before = set(early)
        return applied

    def go_on(now):
        """True: somebody did."""
        nonlocal turn
        if backup is not None:
            take_batch()
        applied = in_turn and turn in early
        if applied:
            commit(now, turn, early.pop(turn))
            turn = (turn + 1) % n
        allowed = [i for i in sorted(waits)
                   if staleness is None
                   or clocks[i] - min(clocks) <= (most if extra[i] else staleness)]
        for i in allowed:
            waits.discard(i)
            extra[i] -= extra[i] > 0
            if leads is not None:
                leads.append(clocks[i] - min(clocks))
            held[i] = version
            clock.push(now + later(i), ARRIVES, i, x.copy())
        return applied or bool(allowed)

    def take_model(now, i, model):
        if pulled[i] is not None:
            models[i].append(model.copy())
        pulled[i] = at[i] = model
        if len(models[i]) <= rounds:
            clock.push(now + times[i](len(models[i])), ENDS, i)

    def take_gradient(now, i, g):
        if in_turn or backup is not None:
            early[i] = g
        else:
            commit(now, i, g)

    def end_gradient(now, i):
        g = nodes[i].gradient(at[i]) + nodes[i].decay * at[i]
        at[i] = at[i] - nodes[i].rate * g
        if len(models[i]) % every == 0:
            way = message(i, pulled[i] - at[i])
            clock.push(now + later(i), ARRIVES, i, ("commit", way))
        else:
            models[i].append(at[i].copy())
            clock.push(now + times[i](len(models[i])), ENDS, i)

    while go_on(0):
        pass
    for now in clock.instants():
        for kind, i, what in clock.at(now):
            if kind == ENDS:
                end_gradient(now, i)
            elif isinstance(what, tuple):
                take_gradient(now, i, what[1])
            else:
                take_model(now, i, what)
        while go_on(now):
            for _, i, what in clock.at(now, [ARRIVES]):
                take_model(now, i, what)
    return models


def sharded(problem, optimizer, rounds, times, staleness, latency=0):
    """Ho et al. 2013 with a server on each node, which has a part of the vector, and counts commits
    to it by itself. A node's round is over when the last part of the model is there."""
    x0 = problem[2].astype(float)
    n, nodes, models = len(x0), steps_of(problem, optimizer), [[x.copy()] for x in x0]
    ends = [x0.shape[1] * k // n for k in range(n + 1)]
    parts = [slice(*pair) for pair in zip(ends, ends[1:])]
    x = np.concatenate([x0[k][parts[k]] for k in range(n)])
    clocks, waits = np.zeros((n, n), int), [set(range(n)) for _ in range(n)]
    at, missing, clock = x0.copy(), [n] * n, Clock()

    def happen(now, kind, i, what):
        if kind == ENDS:
            g = nodes[i].gradient(at[i]) + nodes[i].decay * at[i]
            for k in range(n):
                commit = "commit", i, nodes[i].rate * g / n
                clock.push(now + latency * (k != i), ARRIVES, k, commit)
            missing[i] = n
            return
        word, k, values = what
        if word == "commit":
            x[parts[i]] -= values[parts[i]]
            clocks[i][k] += 1
            waits[i].add(k)
            return
        at[i][parts[k]] = values
        missing[i] -= 1
        if missing[i] == 0:
            if clocks.sum(axis=0)[i] > 0:
                models[i].append(at[i].copy())
            if len(models[i]) <= rounds:
                clock.push(now + times[i](len(models[i])), ENDS, i)

    def go_on(now):
        any_one = False
        for k in range(n):
            for i in sorted(waits[k]):
                if clocks[k][i] - clocks[k].min() <= staleness:
                    waits[k].discard(i)
                    any_one = True
                    model = "model", k, x[parts[k]].copy()
                    clock.push(now + latency * (k != i), ARRIVES, i, model)
        return any_one

    go_on(0)
    for now in clock.instants():
        for event in clock.at(now):
            happen(now, *event)
        while go_on(now):
            for event in clock.at(now, [ARRIVES]):
                happen(now, *event)
    return models
