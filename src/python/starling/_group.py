"""A process group of torch.distributed as one peer: its first process gossips and broadcasts."""

import collections
import ctypes
import os
import pickle

import threading
import time

import torch
import torch.distributed as dist

from starling._library import Error
from starling._session import Report, Session, log

TELL_AFTER_S = 5
KEPT = 64  # works: more than a thread of gloo falls behind


def _check(group):
    if not dist.is_available() or not dist.is_initialized():
        raise Error("group=: torch.distributed.init_process_group() comes first")
    try:
        backend = dist.get_backend(group)
    except Exception as problem:  # of torch: TypeError, AssertionError, RuntimeError, ValueError
        raise Error(
            f"group= is a {type(group).__name__}; give what dist.new_group() has returned in a "
            f"process of the group ({type(problem).__name__} of torch: {problem})"
        ) from None
    if backend != "gloo":
        raise Error(
            f"group= has the backend {backend}; it takes gloo, as what is "
            "broadcast is in the CPU's memory: dist.new_group(ranks, backend='gloo')"
        )


def _rank(ranks):
    """That of groups of processes that follow each other."""
    if ranks != list(range(ranks[0], ranks[0] + len(ranks))) or ranks[0] % len(ranks) != 0:
        raise Error(
            f"group= has processes {ranks}: which peer that is follows for groups of equally many "
            "processes that follow each other only; give rank= and size="
        )
    return ranks[0] // len(ranks)


def _size(ranks):
    """As many as such groups are."""
    world = dist.get_world_size()
    if world % len(ranks) != 0:
        raise Error(
            f"{world} processes are no whole number of groups of {len(ranks)}, such as {ranks}: "
            "give size=, how many groups join as peers"
        )
    return world // len(ranks)


class Watch:
    """Says, once for each wait, that one lasts; on a thread of its own, as gloo waits outside of
    Python."""

    def __init__(self, text):
        self._text, self._since, self._ended = text, None, False
        self._told = True
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self):
        while not self._ended:
            time.sleep(0.5)
            since = self._since
            if since is None or self._told or time.monotonic() - since < TELL_AFTER_S:
                continue
            self._told = True
            log.warning("%s has waited %d s %s", self._text[0], TELL_AFTER_S, self._text[1])

    def __enter__(self):
        self._since, self._told = time.monotonic(), False

    def __exit__(self, *_):
        self._since = None

    def end(self):
        self._ended = True


class GroupSession:
    """As Session. All processes of the group make the same calls; the first one makes them of a
    session, and tells the others what came of it, an error too."""

    def __init__(self, experiment, dimension, options, group, says_nodes):
        """says_nodes: does the experiment's topology say how many peers there are?"""
        _check(group)
        self._group, self._dimension = group, dimension
        ranks = [dist.get_global_rank(group, i) for i in range(dist.get_world_size(group))]
        self._source = ranks[0]
        self._session, self._begun, self._report = None, None, None
        self._left = False
        self._works = collections.deque(maxlen=KEPT)
        if options.rank < 0:
            options.rank = _rank(ranks)
        if options.nodes < 0 and not says_nodes and "STARLING_SIZE" not in os.environ:
            options.nodes = _size(ranks)
        text = "for the other processes of the group, which make the same calls"
        if not self._leads():
            text = f"for process {self._source} of the group, which gossips for all of them"
        self._watch = Watch((f"process {dist.get_rank()}", text))
        self._tell(lambda: self._open(experiment, options))

    def _open(self, experiment, options):
        self._session = Session(experiment, self._dimension, options, lambda: False)

    def _leads(self):
        return dist.get_rank(self._group) == 0

    def _tell(self, work):
        """work() on the first process; its result, or its Error, on all."""
        told = [None, None, None]
        if self._leads():
            try:
                told[0] = work()
            except Error as error:
                told[1] = (str(error), error.code, error.rank, error.edge, error.round)
            if self._session is not None:
                told[2] = bytes(self._session.report())
        told = self._broadcast_object(told)
        if told[1] is not None:
            raise Error(*told[1])
        self._report = told[2] or self._report
        return told[0]

    def _broadcast(self, tensor):
        try:
            work = dist.broadcast(tensor, self._source, group=self._group, async_op=True)
            self._works.append(work)
            with self._watch:
                work.wait()
        except RuntimeError as problem:  # of gloo
            raise Error(
                f"group=: process {dist.get_rank()} has lost the others of its group: {problem}",
                "SL_EPEER",
            ) from problem

    def _close(self):
        self._watch.end()
        self._keep_works()

    def _keep_works(self):
        """For ever, the last ones, and their tensors with them: a thread of gloo that still has
        one, and lets go of it while the process ends, would abort the process."""
        for work in self._works:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(work))

    def _broadcast_object(self, value):
        """The first process's value, on all."""
        data = bytearray(pickle.dumps(value) if self._leads() else b"")
        size = torch.tensor([len(data)])
        self._broadcast(size)
        data = data or bytearray(size.item())
        self._broadcast(torch.frombuffer(data, dtype=torch.uint8))
        return pickle.loads(data)

    def _send(self, x, count):
        """The first process's numbers to all."""
        floats = (ctypes.c_float * count).from_address(ctypes.addressof(x.contents))
        self._broadcast(torch.frombuffer(floats, dtype=torch.float32))

    def start(self, x):
        self._tell(lambda: self._session.start(x))
        self._send(x, self._dimension)

    def load(self, state):
        self._tell(lambda: self._session.load(state))

    def save(self, x):
        """The state, on the first process; None on the others."""
        saved = []
        self._tell(lambda: saved.append(self._session.save(x)))
        return saved[0] if saved else None

    def mix(self, x):
        self._tell(lambda: self._session.mix(x))
        self._send(x, self._dimension)

    def begin(self, x):
        self._begun = None
        if self._leads():
            try:
                self._session.begin(x)
            except Error as error:  # told at the end, where all processes meet
                self._begun = error

    def _end(self, x):
        if self._begun is not None:
            raise self._begun
        self._session.end(x)

    def end(self, x):
        self._tell(lambda: self._end(x))
        self._send(x, self._dimension)

    def average(self, x, average):
        distance = self._tell(lambda: self._session.average(x, average))
        self._send(ctypes.cast(average, ctypes.POINTER(ctypes.c_float)), len(average))
        return distance

    def sum(self, values, count):
        givers = self._tell(lambda: self._session.sum(values, count))
        doubles = (ctypes.c_double * count).from_address(ctypes.addressof(values.contents))
        self._broadcast(torch.frombuffer(doubles, dtype=torch.float64))
        return givers

    @property
    def is_open(self):
        return not self._left

    def check_caller(self):
        if self._leads():
            self._session.check_caller()

    def report(self):
        if self._leads():
            return self._session.report()
        return Report.from_buffer_copy(self._report)

    def members(self):
        if not self._leads():
            raise Error("members: the first process of the group knows them")
        return self._session.members()

    def check_whole(self):
        self._tell(lambda: self._session.check_whole())

    def leave(self):
        self._left = True
        self._tell(lambda: self._session.leave())
        self._close()

    def abort(self, why):
        self._left = True
        if self._leads():
            self._session.abort(why)
        self._close()
