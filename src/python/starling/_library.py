"""libstarling by ctypes: where it is, what it exports, and how its errors become exceptions."""

from __future__ import annotations

import ctypes
import os
import pathlib

NAMES = ("libstarling-core.so", "libstarling.so.0")
CODES = {
    -1: "SL_EINVAL",
    -2: "SL_EFILE",
    -3: "SL_ENOMEM",
    -4: "SL_ENET",
    -5: "SL_EPEER",
    -6: "SL_EPROTO",
    -7: "SL_EDIVERGED",
    -8: "SL_ESTOPPED",
    -9: "SL_EDEVICE",
    -10: "SL_ESAVED",
    -11: "SL_ELEFT",
    -12: "SL_EVOID",
    -13: "SL_ETRAINS",
}
FABRIC = "libfabric.so.1"
NO_FABRIC = (
    "libfabric is not installed (libfabric.so.1), and peers send through it: install the package "
    "libfabric1 (Debian, Ubuntu) or libfabric (Fedora, conda)"
)
NOWHERE, TEXT_MAX = -1, 1024
SAID_MAX = 400  # of what another library says


class Error(Exception):
    """What Starling refuses, or what failed.

    code: the name in starling/error.h, "SL_EPEER"; edge: (sender, receiver) or None; rank and
    round: where it happened, or None.
    """

    __module__ = "starling"  # as tracebacks show it

    code: str
    rank: int | None
    edge: tuple[int, int] | None
    round: int | None

    def __init__(
        self,
        text: str,
        code: str = "SL_EINVAL",
        rank: int | None = None,
        edge: tuple[int, int] | None = None,
        round: int | None = None,
    ) -> None:
        """text: one sentence; of what it quotes a terminal obeys nothing."""
        super().__init__(shown(text))
        self.code, self.rank, self.edge, self.round = code, rank, edge, round


class naming:
    """In `with`: what another library raises becomes an Error that begins with these words."""

    def __init__(self, what):
        self._what = what

    def __enter__(self):
        pass

    def __exit__(self, kind, raised, trace):
        if not isinstance(raised, Exception) or isinstance(raised, Error):
            return
        code = "SL_ENOMEM" if isinstance(raised, MemoryError) else "SL_EINVAL"
        said = " ".join(str(raised).split()) or "nothing more"
        raise Error(f"{self._what}: {kind.__name__}: {said[:SAID_MAX]}", code) from raised


class CError(ctypes.Structure):
    """sl_error"""

    _fields_ = [
        ("code", ctypes.c_int),
        ("rank", ctypes.c_int64),
        ("peer", ctypes.c_int64),
        ("round", ctypes.c_int64),
        ("text", ctypes.c_char * TEXT_MAX),
    ]

    def fill(self, text, code):
        self.rank = self.peer = self.round = NOWHERE
        self.code, self.text = code, text.encode()[: TEXT_MAX - 1]

    def exception(self):
        rank, peer, round = (
            None if value == NOWHERE else value for value in (self.rank, self.peer, self.round)
        )
        edge = None if rank is None or peer is None else (peer, rank)
        text = self.text.decode(errors="replace")
        return Error(text, CODES.get(self.code, str(self.code)), rank, edge, round)


def _open(path):
    try:
        return ctypes.CDLL(str(path))
    except OSError as problem:
        if "libfabric" in str(problem):
            raise ImportError(NO_FABRIC) from None
        raise


def _find():
    """The package's own library, then STARLING_LIBRARY, then the system's."""
    folder = pathlib.Path(__file__).parent
    for name in NAMES:
        if (folder / name).exists():
            return _open(folder / name)
    chosen = os.environ.get("STARLING_LIBRARY")
    try:
        if chosen and "/" in chosen and not os.path.isfile(chosen):
            raise OSError("it is no regular file")  # of which a pipe would be waited for
        return _open(chosen or NAMES[-1])
    except OSError as problem:
        where = f"STARLING_LIBRARY={chosen}" if chosen else f"{NAMES[-1]} on this system"
        raise ImportError(
            f"libstarling does not open ({where}: {problem}); install libstarling0, or let "
            "STARLING_LIBRARY name the file"
        ) from None


# What libfabric brings reads these when it is opened: verbs learn that workers of a DataLoader are
# forks, PSM that Ctrl-C is Python's.
for _name in ("RDMAV_FORK_SAFE", "IPATH_NO_BACKTRACE"):
    os.environ.setdefault(_name, "1")
library = _find()
IS_CORE = not hasattr(
    library, "sl_spectrum_eigenvalues"
)  # no LAPACK; opens libfabric when it joins


def check_fabric():
    """Refuses to join where the core would find no libfabric."""
    try:
        ctypes.CDLL(FABRIC)
    except OSError:
        raise Error(NO_FABRIC, "SL_ENET") from None


def declare(name, result, *arguments):
    """Gives a function its types; one that this library lacks is None."""
    function = getattr(library, name, None)
    if function is not None:
        function.restype, function.argtypes = result, arguments
    return function


def call(function, *arguments):
    """Calls what returns 0 or a code and takes an sl_error last; raises Error."""
    error = CError()
    if function(*arguments, ctypes.byref(error)) < 0:
        raise error.exception()


_show = declare(
    "sl_text_show",
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_char_p,
    ctypes.c_size_t,
)


def shown(text):
    """A text of anybody's as libstarling shows all of them: in one line."""
    content = text.encode(errors="backslashreplace")
    room = ctypes.create_string_buffer(4 * len(content) + 4)
    return _show(room, len(room), content, len(content)).decode()


version = declare("sl_version", ctypes.c_char_p)
_open_file = declare("sl_file_open", ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(CError))
_read = declare(
    "sl_text_read",
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.POINTER(CError),
)
free = ctypes.CDLL(None).free
free.argtypes = [ctypes.c_void_p]
free.restype = None


def read_file(path):
    """All bytes of a regular file. Raises Error."""
    error = CError()
    descriptor = _open_file(os.fsencode(path), ctypes.byref(error))
    if descriptor < 0:
        raise error.exception()
    try:
        with os.fdopen(descriptor, "rb") as file:
            return file.read()
    except OSError as problem:
        raise Error(f"{path}: {problem.strerror}", "SL_EFILE") from None


def read_text(path, bytes_max):
    """The bytes of a text file as libstarling reads all of them: unpacked, without a byte order
    mark, with LF at line ends. Raises Error."""
    text = ctypes.c_void_p()
    call(_read, ctypes.byref(text), os.fsencode(path), bytes_max)
    try:
        return ctypes.string_at(text)
    finally:
        free(text)
