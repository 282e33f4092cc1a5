"""One peer: a session with the user's numbers."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import html
import math
import sys
import weakref
from typing import Any, Iterator

from starling._library import Error, naming
from starling._mean import mean, own
from starling._memory import bytes_of
from starling._session import log
from starling._sums import agree
from starling._vectors import vector_of

STATE = {"rank", "round", "exchanging", "session", "masters"}
alive: weakref.WeakSet[Any] = weakref.WeakSet()


def why(exception):
    text = str(exception)
    return type(exception).__name__ + (f": {text}" if text else "")


@atexit.register
def _end_all():
    """A script that ends, however it ends, does not let its neighbours wait for a deadline."""
    interactive = hasattr(sys, "ps1")  # there last_value may be hours old
    uncaught = None if interactive else getattr(sys, "last_value", None)
    for peer in list(alive):
        peer.abort(why(uncaught) if uncaught else "the script ended without peer.leave()")


class Peer:
    """What join() returns. Its calls are made by the thread that joined."""

    distance: float  #: how far apart the models were at the last average(), or NaN

    def __init__(self, opening: Any, given: Any) -> None:
        """Of join() only. opening: from numbers to a session."""
        self._opening, self._device = opening, opening.device
        self._rounds = 0  # of sessions before
        self._gossip: Any = None  # the optimizer's
        self.distance = math.nan
        self._open(given)
        alive.add(self)

    def _open(self, given: Any, again: bool = False) -> None:
        self._session, self._vector, self._same_start = self._opening.open(given, again)
        self._given, self._vector.session = given, self._session
        self._started = False
        self._mixed = self._vector  # that of the last round
        self._exchanged: Any = None  # that of the exchange that is under way

    # ---- the beginning ----

    def start(self) -> None:
        """Waits until the neighbours are there, and begins, where join() was told start=False."""
        self._check_unstarted("start()")
        try:
            self._session.start(self._vector.take("start"))
            self._started = True
            self._vector.absorb()
            if self._same_start and self._vector.is_module:
                self._vector.share_state(self._session.sum, self.rank == 0)
        except BaseException as raised:
            self._session.abort(why(raised))
            raise

    def state_dict(self, x: Any = None) -> dict[str, Any]:
        """What this peer goes on from after a stop, beside your model and optimizer: a dict for
        torch.save() or pickle. All peers call it after as many steps; nothing is changed.
        x: your numbers as they are now; by default those that were mixed last."""
        self._check_active("state_dict()")
        vector = self._exchanged or (self._mixed if x is None else self._find("state_dict()", x))
        state = self._session.save(vector.take("save"))
        return {
            "rank": self.rank,
            "round": self.round,
            "exchanging": self.exchanging,
            "session": None if state is None else vector.keep(state),
            "masters": vector.masters(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Starts, where join() was told start=False, and goes on from what state_dict() has given
        out. What join() got is as it was then; so are its optimizer and schedule."""
        self._check_unstarted("load_state_dict()")
        if not isinstance(state, dict) or not STATE.issubset(state):
            raise Error("load_state_dict(): this is no dict that peer.state_dict() has given out")
        saved = state["session"]
        with naming("load_state_dict(): this state is damaged"):
            self._vector.restore(dict(state["masters"]))
        x = self._vector.take("save")
        self._session.load(None if saved is None else bytes_of(saved, "the state's session"))
        self._session.start(x)
        self._started = True
        if state["exchanging"]:
            self._exchanged = self._vector

    # ---- rounds ----

    def mix(self, x: Any = None) -> None:
        """One round of the experiment's algorithm. x, by default what was given to join(): in, the
        numbers after your step; out, those after the exchange."""
        vector = self._free_vector("mix()", x)
        self._session.mix(vector.take("mix"))
        vector.absorb()

    def begin(self, x: Any = None) -> None:
        """Publishes x as it is now. What changes in it until end() is kept, beside the exchange."""
        vector = self._free_vector("begin()", x)
        self._session.begin(vector.take("begin"))
        self._exchanged = vector

    def end(self) -> None:
        """Ends the exchange that is under way, if there is one: x becomes W x, and what has
        changed in x since begin() is added."""
        if self._exchanged is None:
            return
        self._session.check_caller()
        vector = self._exchanged
        if vector.by_layers:
            vector.check_place(0, len(vector.tensors))
            vector.follow_streams()
        x = None if vector.by_layers else vector.take("end")
        self._exchanged = None
        self._session.end(x)
        vector.absorb()

    def _give_out(self, vector):
        """Of _layers.py: a round is under way with these numbers."""
        self._exchanged = self._mixed = vector

    def _took_all(self):
        """The same: all of them are there."""
        self._exchanged = None

    @contextlib.contextmanager
    def exchange(self, x: Any = None) -> Iterator[None]:
        """begin(x), your gradient, end()."""
        self.begin(x)
        yield
        self.end()

    def attach(self, optimizer: Any, scaler: Any = None) -> Any:
        """From here on optimizer.step() gossips. Returns the optimizer."""
        from starling._attach import attach

        self._check_active("attach()")
        if not self._vector.parameters():
            raise Error(
                "attach() is for a peer that joined with a torch module or tensors; call mix() or "
                "exchange()"
            )
        if self._gossip is not None:
            raise Error(
                "attach() is called once; with several optimizers leave it out, and call peer.mix()"
                " after their steps"
            )
        self._gossip = attach(self, self._vector, optimizer, scaler)
        return optimizer

    def average(self, x: Any = None) -> Any:
        """The mean of all peers' numbers as they are now, in the form of x: for a module a
        state_dict. x: your numbers, by default what was mixed last. peer.distance says how far
        apart they are. If a peer is lost while the average is made (membership.on_loss "continue"),
        it may be this peer's own numbers: then the distance is NaN, and the next call makes a new
        one."""
        self._check_active("average()")
        self._warn_unseen("average()")
        self.end()
        vector = self._mixed if x is None else self._find("average()", x)
        values = (ctypes.c_float * vector.count)()
        self.distance = self._session.average(vector.take("average"), values)
        if not vector.is_module:
            return vector.result(values)
        return vector.result(values, self._mean_state())

    def mean(self, x: Any) -> Any:
        """The mean over all peers of x, as a new one: a torch tensor or numpy array of any shape,
        dtype and device, a number, or a list or dict of those, equal in kind on all peers. Floats
        are added up exactly as average() does, in their own precision; integers are rounded, a
        half up; a number becomes a float. Waits for all peers, which make the same calls in the
        same order. If a peer is lost meanwhile, a warning says so and x comes back. Of a group,
        the first process's x counts."""
        self._check_active("mean()")
        self.end()
        try:
            return mean(self._session.sum, x)
        except Error as error:
            if error.code != "SL_EVOID":
                raise
            log.warning("mean(): a peer was lost while it was made: these are this peer's numbers")
            return own(x)

    # ---- what trains changes ----

    def rejoin(self, x: Any = None, optimizer: Any = None, scaler: Any = None) -> None:
        """Goes on with what trains now, where that has changed since join(): parameters that were
        unfrozen, frozen, added or taken away, or another x. All peers call it after the same step:
        they leave, and join again with their own numbers; names that are new get rank 0's. The
        algorithm begins anew, rounds are counted on. optimizer: one to attach in place of the one
        before, which else goes on to gossip.

        Raises Error, and changes nothing, where peers are lost or have other numbers than these."""
        self._check_active("rejoin()")
        given = self._given if x is None else x
        self._session.check_whole()
        self._end_as_before()
        vector = self._opening.vector_of(given)
        if not agree(self._session.sum, repr(vector.tensors).encode()):
            raise Error(
                "rejoin(): the peers would train other parameters; this one "
                f"{', '.join(f'{name} {shape}' for name, shape in vector.tensors)}: all peers "
                "change the same ones before they call it"
            )
        if vector.is_module:
            vector.share_new(self._session.sum, self.rank == 0, self._vector)
        rounds = self.round
        self._session.leave()
        self._open(given, again=True)
        self._rounds = rounds
        self._opening.start(self)
        if optimizer is not None:
            self._gossip = None if self._gossip is None else self._gossip.finish()
            self.attach(optimizer, scaler)
        elif self._gossip is not None:
            self._gossip.follow(self._vector)

    def _end_as_before(self):
        """end() where what trains has changed since begin()."""
        if self._exchanged is not None:
            self._exchanged.changes = True
            try:
                self.end()
            finally:
                self._vector.changes = False

    # ---- whom it trusts ----

    def reload(self) -> str:
        """Reads the roster's file and the experiment's keys again, and returns what has changed, in
        words: further ranks are let in, another pair or run's key is used from the next connection
        on, and a peer that is revoked in the roster loses its connections at once. Where a file is
        wrong it raises, and all stays as it was. Waits for no other peer; from any thread."""
        return self._session.reload()

    def serve(self, place: str = "127.0.0.1:0", public: bool = False) -> int:
        """Answers whoever looks at this peer at HOST:PORT, over HTTP, until it leaves: /metrics for
        Prometheus, /livez, /readyz and /status. Returns the port; 0 means a free one. Beyond
        loopback only if `public`, as anybody may look there. Once; from any thread."""
        return self._session.serve(str(place), bool(public))

    # ---- the end ----

    def leave(self) -> None:
        """Answers the others' rounds with displacement 0 until they have left too, then ends."""
        if self.active:
            self._warn_unseen("leave()")
            self.end()
            self._session.leave()

    def abort(self, why: str) -> None:
        """Ends this peer at once; the neighbours' next call fails with the text."""
        if self.active:
            self._session.abort(str(why))

    def __del__(self):
        # Its numbers are about to be freed, and an exchange may read them.
        if hasattr(self, "_exchanged"):
            self.abort("the peer was dropped without peer.leave()")

    def __reduce__(self):
        raise Error(
            "a peer stays with its process and cannot be copied or pickled: keep it out of what "
            "other processes get, such as a model or a data set"
        )

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, kind: Any, exception: Any, trace: Any) -> None:
        if exception is None:
            self.leave()
        else:
            self.abort(why(exception))

    def __repr__(self) -> str:
        """One line, with whom it waits for."""
        try:
            return f"<starling.Peer: {', '.join(self._shown())}>"
        except Error as error:  # as in a forked child
            return f"<starling.Peer: {error}>"

    def _repr_html_(self) -> str:
        """The same as a small table, for notebooks."""
        try:
            head, *rows = self._shown()
        except Error as error:
            head, rows = str(error), []
        lines = "".join(f"<tr><td>{html.escape(row)}</td></tr>" for row in rows)
        return f"<table><tr><th>starling.Peer: {html.escape(head)}</th></tr>{lines}</table>"

    def _shown(self) -> list[str]:
        """Where it stands, in words."""
        said = [f"rank {self.rank} of {self.size}", f"round {self.round}"]
        if not self.active:
            return [*said, "has left"]
        distance, lost = self.neighbour_distance, self.size - len(self._known_members())
        if not math.isnan(distance):
            said.append(f"{distance:.3g} from its neighbours")
        if lost > 0:
            said.append(f"{lost} lost")
        if self.exchanging:
            said.append("an exchange is under way")
        if self.waiting_for:
            said.append(f"waits for {self.waiting_for}")
        return said

    def _known_members(self) -> list[int]:
        try:
            return self.members
        except Error:  # of a group's other processes
            return list(range(self.size))

    # ---- what is known ----

    @property
    def active(self) -> bool:
        """Has it neither left nor been ended?"""
        return self._session.is_open

    @property
    def exchanging(self) -> bool:
        """Is an exchange under way?"""
        return self._exchanged is not None

    @property
    def rank(self) -> int:
        """Which peer this is: 0 to size - 1, or beyond for one that has joined later."""
        return self._report().rank

    @property
    def size(self) -> int:
        """How many peers the run began with."""
        return self._report().nodes

    @property
    def members(self) -> list[int]:
        """The ranks that take part, rising: all, but for those that are lost."""
        return self._session.members()

    @property
    def epoch(self) -> int:
        """Counts who takes part: 1, and one more each time that peers are gone."""
        return self._report().epoch

    @property
    def round(self) -> int:
        """Rounds that have ended."""
        return self._rounds + self._report().round

    @property
    def neighbour_distance(self) -> float:
        """sqrt(sum_j W_ij ||x_j - x_i||^2) when last measured, or NaN."""
        return self._report().neighbour_distance

    @property
    def waiting_for(self) -> str:
        """Whom and what a call waits for, in words; "" for nobody. From any thread."""
        return self._report().waits_for.decode(errors="replace")

    def metrics(self) -> dict[str, Any]:
        """The report as a dict: rounds, bytes, seconds."""
        report, hidden = self._report(), ("size", "state", "waits_for")
        found = {name: getattr(report, name) for name, _ in report._fields_ if name not in hidden}
        return {**found, "round": self.round, "waiting_for": self.waiting_for}

    # ---- inside ----

    def _mean_state(self):
        """Of what stands beside the vector; this peer's own where a loss has cut it."""
        try:
            return self._vector.mean_state(self._session.sum)
        except Error as error:
            if error.code != "SL_EVOID":
                raise
            self.distance = math.nan
            return []

    def _report(self):
        return self._session.report()

    def _warn_unseen(self, call):
        if self._gossip is not None:
            self._gossip.warn_unseen(call)

    def _check_active(self, call):
        if not self.active:
            raise Error(f"{call}: this peer has left")
        if not self._started:
            raise Error(f"{call}: start() or load_state_dict() comes first")

    def _check_unstarted(self, call):
        if not self.active:
            raise Error(f"{call}: this peer has left")
        if self._started:
            raise Error(f"{call}: this peer has started; join(..., start=False) leaves that to you")

    def _free_vector(self, call, x):
        """The vector of x, between exchanges."""
        self._check_active(call)
        if self.exchanging:
            raise Error(f"{call}: an exchange is under way; end() comes first")
        self._mixed = self._find(call, x)
        return self._mixed

    def _find(self, call, x):
        if x is None or x is self._given:
            return self._vector
        if self._vector.is_module:
            raise Error(f"{call}: this peer mixes the module that join() got: give no x")
        vector = vector_of(x, self._device)
        vector.session = self._session
        if vector.count != self._vector.count:
            raise Error(
                f"{call}: x has {vector.count} numbers, where join() got {self._vector.count}"
            )
        vector.copy_unless([math.prod(shape) for _, shape in self._vector.tensors])
        return vector
