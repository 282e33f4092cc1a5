"""join() and simulate(): from an experiment to peers."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import threading
from typing import Any, Callable

from starling import _session
from starling._arguments import as_json, text, texts, whole
from starling._foreign import with_plain_topology
from starling._library import Error, call, read_text
from starling._memory import is_torch
from starling._peer import Peer, alive, why
from starling._topology import topology
from starling._vectors import vector_of

OVERLAPPING = ("default", "combine-while-adapt")  # variants of d-psgd
DEVICE = re.compile("cpu|cuda(:[0-9]{1,4})?")
STOPPED = -8  # SL_ESTOPPED
EXPERIMENT_BYTES_MAX = 64 << 20
_here = threading.local()  # .simulation of the rank that runs on this thread


def _read(experiment):
    """(what sl_session_join takes, its content as far as it can be read here)"""
    if isinstance(experiment, dict):
        found = as_json("experiment", with_plain_topology(experiment))
        return found, json.loads(found)
    found = text("experiment", experiment)
    if found is None or not isinstance(experiment, (str, bytes, os.PathLike)):
        raise Error(
            f"experiment is a {type(experiment).__name__}: give a file, JSON text, or a dict"
        )
    if not found.strip():
        raise Error("experiment is an empty text: give a file, JSON text, or a dict")
    try:
        if found.lstrip().startswith(b"{"):
            content = json.loads(found)
        else:
            content = json.loads(read_text(found, EXPERIMENT_BYTES_MAX))
    except (Error, ValueError, RecursionError):
        content = None  # the library says what is wrong with it
    return found, content if isinstance(content, dict) else {}


def _can_overlap(content):
    """Does it send from the user's memory while a gradient is computed? d-psgd does, unless it is
    to adapt first."""
    algorithm = content.get("algorithm", "d-psgd")
    if not isinstance(algorithm, dict):
        algorithm = {"name": algorithm}
    name, variant = algorithm.get("name", "d-psgd"), algorithm.get("variant", "default")
    return name == "d-psgd" and variant in OVERLAPPING and not _goes_by_layers(content)


def _goes_by_layers(content):
    transport = content.get("transport")
    way = transport.get("overlap", "none") if isinstance(transport, dict) else "none"
    return way != "none"


def _says_nodes(content):
    """Does the topology say how many peers there are?"""
    try:
        return topology(content.get("topology", {})).nodes > 0
    except Error:
        return False


def _device_name(content):
    device = content.get("device", "cpu")
    if not isinstance(device, str) or not DEVICE.fullmatch(device):
        raise Error(
            f"experiment: device: {json.dumps(device)} is not allowed; it must be "
            '"cpu", or "cuda:N" for a GPU, such as "cuda:0", or "cuda": that of x'
        )
    return device


def _first(x):
    """Of what x holds, a tensor or an array; x itself, of a class or an empty list."""
    if isinstance(x, (list, tuple)) and x:
        return x[0]
    if hasattr(x, "named_parameters") and not isinstance(x, type):
        return next((p for _, p in x.named_parameters()), x)
    return x


def _device_of(device, x):
    """Of "cuda" the GPU that x is on, or else torch's current one."""
    if device != "cuda":
        return device
    first, torch = _first(x), sys.modules.get("torch")
    found = getattr(first, "device", None)  # of torch, or CuPy's
    index = found.index if is_torch(first) else getattr(found, "id", None)
    if index is None and torch is not None and torch.cuda.is_available():
        index = torch.cuda.current_device()
    return f"cuda:{index or 0}"


def _check_device(device, x):
    """Is it there? Torch's own errors say nothing of the experiment."""
    first = x[0] if isinstance(x, (list, tuple)) and x else x
    if device == "cpu" or not (is_torch(first) or hasattr(first, "named_parameters")):
        return
    count = sys.modules["torch"].cuda.device_count() if "torch" in sys.modules else 0
    if int(device[5:]) >= count:
        raise Error(
            f'experiment: device: "{device}" is not there: torch sees {count} GPUs; '
            'leave device out for "cpu"',
            "SL_EDEVICE",
        )


def join(
    experiment: Any,
    x: Any,
    *,
    rank: int | None = None,
    size: int | None = None,
    roster: str | os.PathLike[str] | list[str] | None = None,
    master: str | None = None,
    listen: str | None = None,
    key: str | os.PathLike[str] | None = None,
    same_start: bool | None = None,
    start: bool = True,
    group: Any = None,
    joins: bool = False,
    borrow: bool = False,
) -> Peer:
    """Joins the experiment's peers with the numbers of x, and waits until the neighbours are there.

    experiment: a file, JSON, or a dict. x: a torch module, a list of tensors, or one array. With
    "device": "cuda:N" in the experiment x is there: a module, a tensor, or what has
    __cuda_array_interface__; with "cuda" it may be on any GPU.
    rank, size, roster: which peer this is, of how many, and their addresses (a file, a list, or a
    pattern "host-{rank}:7000"); or master: "HOST:PORT" where rank 0 tells the roster. Default: what
    the launcher says in the environment. listen: "HOST:PORT" of this peer.
    key: in place of the experiment's security.key: a file of `starling keys make`.
    same_start: all begin with the numbers of rank 0; default: for modules.
    start: False: peer.load_state_dict() or peer.start() comes next, and waits in its place.
    group: a process group of torch.distributed whose processes together are one peer.
    borrow: True: float32 parameters of a module become views of one vector, which neighbours of
    this host read where it is; an array is sent from where it is. Who changes them between begin()
    and end() gets an error that names the parameter.
    joins: True: the others train; this peer takes the rank of one that they have lost, or one
    beyond the topology's (membership.joiners), and begins with their numbers, in their round. Needs
    rank and roster.
    """
    told = {"rank": rank, "size": size, "roster": roster, "master": master, "listen": listen}
    opening = _Opening(experiment, {**told, "key": key}, same_start, group, joins, borrow)
    peer = Peer(opening, x)
    if start:
        opening.start(peer)
    return peer


class _Opening:
    """What join() was told: from numbers to sessions."""

    def __init__(self, experiment, told, same_start, group, joins, borrow):
        self._simulation = getattr(_here, "simulation", None)
        if self._simulation is not None:
            experiment = self._simulation.experiment
        self._experiment, self._content = _read(experiment)
        self._told, self._same_start, self._group = told, same_start, group
        self._joins, self._borrow = bool(joins), bool(borrow)
        self.device = _device_name(self._content)

    def vector_of(self, x):
        self.device = _device_of(self.device, x)
        _check_device(self.device, x)
        grouped = self._group is not None
        vector = vector_of(x, self.device, self._borrow, gathered=grouped)
        if vector.is_distributed and not grouped:
            raise Error(
                "the model is DistributedDataParallel, whose processes are one peer: give their "
                "group as group="
            )
        if grouped and self.device != "cpu":
            raise Error(
                "group= shares numbers of the host, and the experiment's device is "
                f'{self.device}: leave it "cpu"'
            )
        vector.overlap = _can_overlap(self._content)
        vector.by_layers = vector.is_module and _goes_by_layers(self._content)
        if vector.by_layers and (grouped or self._borrow):
            raise Error(
                "transport.overlap takes parameters from where they are: leave "
                f"{'group=' if grouped else 'borrow='} out"
            )
        return vector

    def open(self, x, again=False):
        """(session, vector, do all get rank 0's state?). again: of a peer that goes on with its own
        numbers."""
        vector = self.vector_of(x)
        same = vector.is_module if self._same_start is None else bool(self._same_start)
        same, joins = same and not again, self._joins and not again
        options, stopped = self._options()
        options.same_start, options.joins, options.overlap = same, joins, vector.overlap
        options.borrow = self._borrow and vector.overlap
        options.home = None if vector.home is None else vector.home.handle
        tensors = _session.Tensors(vector.tensors)
        options.tensors, options.tensor_count = tensors.array, len(tensors.array)
        return self._open(vector, options, stopped), vector, same and not joins

    def _options(self):
        """And a function that says whether calls shall end."""
        if self._simulation is not None:
            return _session.copy_of(_here.options), self._simulation.is_stopped
        told, options = self._told, _session.default_options()
        if self._content.get("device") == "cuda":  # another GPU in each process
            options.overrides = (ctypes.c_char_p * 1)(f"device={self.device}".encode())
            options.override_count = 1
        options.rank, options.nodes = whole("rank=", told["rank"]), whole("size=", told["size"], 1)
        options.roster = texts("roster=", told["roster"])
        for name in ("master", "listen", "key"):
            setattr(options, name, text(f"{name}=", told[name]))
        return options, _never

    def _open(self, vector, options, stopped):
        given = self._experiment, vector.count, options
        if self._group is None:
            session = _session.Session(*given, stopped)
        else:
            from starling._group import GroupSession

            session = GroupSession(*given, self._group, _says_nodes(self._content))
        if self._simulation is not None:
            self._simulation.sessions.append(session)
        return session

    @staticmethod
    def start(peer):
        try:
            peer.start()
        except Error as error:
            if error.code == "SL_ENET" and any(peer.active for peer in alive):  # as in a notebook
                error.args = (
                    f"{error}; a peer of this process has not left: peer.leave() comes first",
                )
            raise


def _never():
    return False


class _Simulation:
    """n ranks in one process, each on a thread of its own, of which one runs at a time."""

    def __init__(self, n, train, experiment, out, evaluate):
        self._train, self.experiment = train, experiment
        self._out, self._evaluate = out, evaluate
        self._text, self._content = _read(experiment)
        self.results, self._raised, self._error = [None] * n, {}, None
        self.sessions, self._stopped = [], False
        self._peer = _session.PEER(self._run_rank)

    def is_stopped(self):
        return self._stopped

    def _run_rank(self, context, options, error):
        rank = options.contents.rank
        _here.simulation, _here.options = self, options.contents
        try:
            self.results[rank] = self._train(rank)
            return 0
        except BaseException as raised:
            self._raised[rank] = raised
            error.contents.fill(f"rank {rank}: {why(raised)}", STOPPED)
            return STOPPED

    def _score(self, context, x, count, loss, accuracy):
        """What evaluate() says of a model: its loss, or (loss, accuracy)."""
        if self._stopped:
            return
        try:
            import numpy

            found = self._evaluate(numpy.ctypeslib.as_array(x, (count,)).copy())
            pair = found if isinstance(found, (tuple, list)) else (found,)
            loss[0] = float(pair[0])
            if len(pair) > 1:
                accuracy[0] = float(pair[1])
        except BaseException as raised:
            self._raised.setdefault(-1, raised)
            self._stopped = True

    def _simulate(self):
        options = _session.default_options()
        options.out = self._out
        score = _session.EVALUATE(self._score)
        if self._evaluate is not None:
            options.evaluate = score
        options.overlap = _can_overlap(self._content)
        count = len(self.results)
        try:
            call(_session.simulate, self._text, count, self._peer, None, ctypes.byref(options))
        except Error as error:
            self._error = error
        for session in self.sessions:
            session.forget()

    def run(self):
        """Waits beside the simulation, so that this thread answers signals."""
        thread = threading.Thread(target=self._simulate)
        thread.start()
        try:
            thread.join()
        except BaseException:
            self._stopped = True
            thread.join()
            raise
        # Who failed first has a reason of its own; the others were told of it.
        everyone = [raised for _, raised in sorted(self._raised.items())]
        if self._error is not None:
            everyone.append(self._error)
        for raised in sorted(everyone, key=_was_told):
            raise raised


def _was_told(raised):
    return isinstance(raised, Error) and raised.code in ("SL_EPEER", "SL_ESTOPPED")


def simulate(
    n: int,
    train: Callable[[int], Any],
    experiment: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    evaluate: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """Calls train(rank) for n ranks in this process, one running at a time, with the bits that n
    processes have. starling.join() in it finds its peer. Returns what train() returned, by rank.

    out: a run folder that it leaves behind, as `starling sim` does. evaluate: with out, called
    with one vector of float32, of each node and of their mean, in rounds of record.every; returns
    its loss on held-out data, or (loss, accuracy)."""
    if getattr(_here, "simulation", None):
        raise Error("simulate() inside of simulate()")
    if not callable(train):
        raise Error(f"train is a {type(train).__name__}; it must be a function, of the rank")
    if n is None:
        raise Error("n is None; it must be how many peers there are")
    if evaluate is not None and (out is None or not callable(evaluate)):
        raise Error("evaluate= must be a function of a model, and out= say where it is recorded")
    simulation = _Simulation(whole("n", n, 1), train, experiment, text("out=", out), evaluate)
    simulation.run()
    return simulation.results
