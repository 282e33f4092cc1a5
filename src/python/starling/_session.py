"""starling/session.h by ctypes."""

import ctypes
import logging
import os
import threading
import weakref

from starling._library import IS_CORE, CError, Error, call, check_fabric, declare, library

log = logging.getLogger("starling")
_text, _u64, _double = ctypes.c_char_p, ctypes.c_uint64, ctypes.c_double
TEXT_MAX = 256  # SL_SESSION_TEXT_MAX
RELOAD_MAX = 512  # SL_SESSION_SAID_MAX
_floats = ctypes.POINTER(ctypes.c_float)
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, _text)
EVALUATE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, _floats, _u64, ctypes.POINTER(_double), ctypes.POINTER(_double)
)
_WAITING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    """sl_session_tensor"""

    _fields_ = [("name", _text), ("shape", ctypes.POINTER(_u64)), ("axes", _u64)]


class Options(ctypes.Structure):
    """sl_session_options"""

    _fields_ = [
        ("size", _u64),
        ("rank", ctypes.c_int64),
        ("nodes", ctypes.c_int64),
        ("roster", _text),
        ("master", _text),
        ("listen", _text),
        ("run_id", _u64),
        ("overlap", _u64),
        ("same_start", _u64),
        ("borrow", _u64),
        ("deadline_s", _double),
        ("overrides", ctypes.POINTER(_text)),
        ("override_count", _u64),
        ("tensors", ctypes.POINTER(_Tensor)),
        ("tensor_count", _u64),
        ("context", ctypes.c_void_p),
        ("log", _LOG),
        ("waiting", _WAITING),
        ("simulation", ctypes.c_void_p),
        ("key", _text),
        ("joins", _u64),
        ("out", _text),
        ("evaluate", EVALUATE),
        ("home", ctypes.c_void_p),
    ]


class Report(ctypes.Structure):
    """sl_session_report"""

    _fields_ = [
        ("size", _u64),
        ("state", _u64),
        ("rank", _u64),
        ("nodes", _u64),
        ("round", _u64),
        ("neighbour_distance", _double),
        ("push_sum_weight", _double),
        ("bytes_sent", _u64),
        ("bytes_received", _u64),
        ("exchange_s", _double),
        ("wait_s", _double),
        ("waits_for", ctypes.c_char * TEXT_MAX),
        ("epoch", _u64),
        ("ahead", _u64),
        ("staleness", _u64),
        ("virtual_s", _double),
        ("bytes_copied", _u64),
    ]


_session, _error = ctypes.c_void_p, ctypes.POINTER(CError)
_int = ctypes.c_int
PEER = ctypes.CFUNCTYPE(_int, ctypes.c_void_p, ctypes.POINTER(Options), _error)
_defaults = declare("sl_session_defaults", None, ctypes.POINTER(Options), _u64)
simulate = declare(
    "sl_simulate", _int, _text, _u64, PEER, ctypes.c_void_p, ctypes.POINTER(Options), _error
)
_join = declare(
    "sl_session_join", _int, ctypes.POINTER(_session), _text, _u64, ctypes.POINTER(Options), _error
)
_start = declare("sl_session_start", _int, _session, _floats, _error)
_load = declare("sl_session_load", _int, _session, ctypes.c_void_p, _u64, _error)
_save = declare(
    "sl_session_save", _int, _session, _floats, ctypes.c_void_p, ctypes.POINTER(_u64), _error
)
_mix = declare("sl_session_mix", _int, _session, _floats, _error)
_begin = declare("sl_session_begin", _int, _session, _floats, _error)
_end = declare("sl_session_end", _int, _session, _floats, _error)
_final = declare("sl_session_final", _int, _session, _floats, _u64, _error)
_await = declare("sl_session_await", _int, _session, _floats, _u64, _u64, _error)
_stream = declare("sl_session_stream", _int, _session, ctypes.c_void_p, _error)
_places = ctypes.POINTER(ctypes.c_void_p)
_place = declare("sl_session_place", _int, _session, _places, _error)
_doubles = ctypes.POINTER(_double)
_average = declare("sl_session_average", _int, _session, _floats, _floats, _doubles, _error)
_sum = declare("sl_session_sum", _int, _session, _doubles, _u64, ctypes.POINTER(_u64), _error)
_reload = declare("sl_session_reload", _int, _session, ctypes.c_char_p, _error)
_port = ctypes.POINTER(ctypes.c_uint16)
_serve = declare("sl_session_serve", _int, _session, _text, _int, _port, _error)
_home_open = declare(
    "sl_session_home_open",
    _int,
    ctypes.POINTER(ctypes.c_void_p),
    _u64,
    ctypes.POINTER(_floats),
    _error,
)
_home_close = declare("sl_session_home_close", None, ctypes.POINTER(ctypes.c_void_p))
_leave = declare("sl_session_leave", _int, ctypes.POINTER(_session), _error)
_abort = declare("sl_session_abort", None, ctypes.POINTER(_session), _text)
_members = declare("sl_session_members", _u64, _session, ctypes.POINTER(_u64), _u64)
_status = declare("sl_session_status", _int, _session, ctypes.POINTER(Report), _error)


def _write(context, text):
    text = text.decode(errors="replace")
    warning = text.startswith("warning: ")
    log.log(logging.WARNING if warning else logging.INFO, text.removeprefix("warning: "))


write_log = _LOG(_write)


class Signals:
    """Answers Ctrl-C while a C function waits: `waiting` is its callback, about ten times a second,
    and `raised` what a signal's handler raised in it. stopped(): shall calls end?"""

    def __init__(self, stopped):
        self.raised, self._stopped = None, stopped
        watch = self._watch()
        next(watch)
        self.waiting = _WAITING(watch.send)

    def _watch(self):
        # Python runs handlers where a function begins or resumes. A function that begins is not yet
        # in its `try`; a generator resumes inside of it.
        while True:
            try:
                while True:
                    yield int(self.raised is not None or self._stopped())
            except GeneratorExit:
                return
            except BaseException as raised:
                self.raised = raised

    def call(self, function, *arguments):
        """As _library.call; what a handler raised comes before the error that it caused."""
        try:
            call(function, *arguments)
        finally:
            raised, self.raised = self.raised, None
            if raised is not None:
                raise raised from None


class Tensors:
    """The sl_session_tensor of [(name, shape)]."""

    def __init__(self, named):
        self.array = (_Tensor * len(named))()
        self._shapes = [(_u64 * max(1, len(shape)))(*shape) for _, shape in named]
        for tensor, (name, shape), sides in zip(self.array, named, self._shapes):
            tensor.name, tensor.shape, tensor.axes = name.encode(), sides, len(shape)


class Home:
    """Memory for x, which neighbours of this host read where it is. It stays as long as `array`,
    which is of ctypes, and who reads that."""

    def __init__(self, count):
        self.handle, x = ctypes.c_void_p(), _floats()
        call(_home_open, ctypes.byref(self.handle), count, ctypes.byref(x))
        self.array = (ctypes.c_float * count).from_address(ctypes.addressof(x.contents))
        weakref.finalize(self.array, _home_close, ctypes.byref(self.handle)).atexit = False


class Session:
    """One sl_session. x: a pointer to the floats, or None where place() has told where they are."""

    def __init__(self, experiment, dimension, options, stopped):
        if IS_CORE and not options.simulation:
            check_fabric()
        self._signals, self._stopped = Signals(stopped), stopped
        options.waiting, options.log = self._signals.waiting, write_log
        self._handle = _session()
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._lock, self._last = threading.Lock(), None  # the last report, once it ends
        handle = ctypes.byref(self._handle)
        self._signals.call(_join, handle, experiment, dimension, ctypes.byref(options))

    def load(self, state):
        """state: bytes that save() gave out; None is refused. start() then goes on from them."""
        call(_load, self._open(), state, len(state or b""))
        self._state = state  # it is read until start() has returned

    def start(self, x):
        self._signals.call(_start, self._open(), x)
        self._state = None

    def save(self, x):
        """All that the next rounds follow from, beside x, as an array of ctypes."""
        size = _u64()
        self._signals.call(_save, self._open(), x, None, ctypes.byref(size))
        state = (ctypes.c_uint8 * size.value)()
        self._signals.call(_save, self._open(), x, state, ctypes.byref(size))
        return (ctypes.c_uint8 * size.value).from_buffer(state)

    def stream(self, stream):
        """The CUDA stream, a number, on which the next calls' x is written and read."""
        call(_stream, self._of_hooks(), stream)

    def place(self, places):
        """From here on x None: at these addresses, one of each tensor."""
        call(_place, self._of_hooks(), places)

    def mix(self, x):
        self._signals.call(_mix, self._open(), x)

    def begin(self, x):
        call(_begin, self._open(), x)

    def end(self, x):
        self._signals.call(_end, self._open(), x)

    def final(self, first):
        """Tensors from this one on are final."""
        self._signals.call(_final, self._of_hooks(), None, first)

    def await_(self, first, count):
        self._signals.call(_await, self._of_hooks(), None, first, count)

    def average(self, x, average):
        """Fills average (d); returns the distance, NaN where a loss has cut the average."""
        distance = _double()
        try:
            self._signals.call(_average, self._open(), x, average, ctypes.byref(distance))
        except Error as error:
            if error.code != "SL_EVOID":
                raise
        return distance.value

    def sum(self, values, count):
        """Adds up values, a pointer to so many doubles, over all peers, in place; returns how many
        of them gave some. SL_EVOID: a loss has cut it; values are as they were."""
        givers = _u64()
        self._signals.call(_sum, self._open(), values, count, ctypes.byref(givers))
        return givers.value

    @property
    def is_open(self):
        return bool(self._handle)

    def report(self):
        """From any thread; once the session ends, or has ended, what it said before."""
        self._check_process()
        with self._lock:
            return self._last or self._status()

    def _status(self):
        if not self._handle:
            raise Error("this peer ended with its simulation")
        report = Report(size=ctypes.sizeof(Report))
        call(_status, self._handle, ctypes.byref(report))
        return report

    def members(self):
        """The ranks that take part; from any thread. Once the session has ended, none."""
        self._check_process()
        with self._lock:
            if not self._handle:
                return []
            count, ranks = 1, ()
            while len(ranks) < count:  # they may have become more
                ranks = (_u64 * count)()
                count = _members(self._handle, ranks, len(ranks))
            return list(ranks[:count])

    def check_whole(self):
        """Refuses where not all of those take part that the run began with, and no others."""
        found, count = self.members(), self.report().nodes
        if found != list(range(count)):
            raise Error(
                f"rejoin(): ranks {', '.join(map(str, found))} take part of a run that began with "
                f"{count} peers, and a new beginning needs these: leave(), and start all anew"
            )

    def reload(self):
        """Reads keys and the roster's file again; returns what has changed. From any thread, while
        no other one is in a call that ends the session."""
        self._check_process()
        said = ctypes.create_string_buffer(RELOAD_MAX)
        call(_reload, self._handle, said)
        return said.value.decode(errors="replace")

    def serve(self, place, public):
        self._check_process()
        port = ctypes.c_uint16()
        call(_serve, self._handle, place.encode(), public, ctypes.byref(port))
        return port.value

    def leave(self):
        self._open()
        self._end(lambda handle: self._signals.call(_leave, handle))

    def abort(self, why):
        """From any thread, while no other one is in a call."""
        if os.getpid() == self._process:  # a child has nothing to end
            self._end(lambda handle: _abort(handle, why.encode()[: TEXT_MAX - 1]))

    def _end(self, end):
        """end(handle) frees the session; no other thread looks at it meanwhile."""
        with self._lock:
            self._last = self._status()
        end(ctypes.byref(self._handle))

    def forget(self):
        """Its simulation is over, and has freed it."""
        self._handle = _session()

    def check_caller(self):
        """Refuses calls that cannot be this session's."""
        self._check_process()
        if threading.get_ident() != self._thread:
            raise Error(
                "this peer joined on another thread, which makes all of its calls (only what is "
                "known of it, such as peer.round or peer.waiting_for, may be asked from any)"
            )
        self._of_hooks()

    def _of_hooks(self):
        """The handle, for calls that hooks of a backward pass make: that of a GPU has a thread of
        its own, while the one that joined waits."""
        self._check_process()
        if self._stopped():
            raise Error("the simulation was stopped", "SL_ESTOPPED")
        return self._handle

    def _check_process(self):
        if os.getpid() != self._process:
            raise Error(
                "this process was forked from the peer, and is none itself: let workers load data, "
                "and call Starling where join() was called"
            )

    def _open(self):
        self.check_caller()
        return self._handle


def default_options():
    if _defaults is None:
        raise Error(f"{library._name} has no sessions: it is older than this package")
    options = Options()
    _defaults(ctypes.byref(options), ctypes.sizeof(Options))
    return options


def copy_of(options):
    return Options.from_buffer_copy(options)
