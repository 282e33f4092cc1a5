"""Connections of other processes are cut from outside: their sockets are borrowed (pidfd_getfd),
and reset, ended, made deaf, or what goes over them is altered. Needs no root where a process may
trace its children."""
import ctypes
import os
import random
import socket
import struct

PIDFD_GETFD = 438
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
DROP_ALL = 0x06  # BPF_RET: so many bytes of what comes are kept, here none
CUTS = ("reset", "end", "silence")

libc = ctypes.CDLL(None, use_errno=True)


def borrow(pid, number):
    """A copy of that process's descriptor."""
    process = os.pidfd_open(pid)
    try:
        copy = libc.syscall(PIDFD_GETFD, process, number, 0)
    finally:
        os.close(process)
    if copy < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return socket.socket(fileno=copy)


def why_not():
    """Why sockets cannot be borrowed here; None: they can."""
    pair = socket.socketpair()
    child = os.fork()
    if child == 0:
        pair[1].recv(1)
        os._exit(0)
    try:
        borrow(child, pair[0].fileno()).close()
        return None
    except OSError as error:
        return f"no socket can be borrowed: {error}"
    finally:
        pair[0].close()
        pair[1].close()
        os.kill(child, 9)
        os.waitpid(child, 0)


def is_connected(one):
    try:
        one.getpeername()
        return True
    except OSError:
        return False


def connections(pid, wanted=is_connected):
    """Borrowed sockets of that process: TCP, connected, or of another kind."""
    found = []
    try:
        numbers = [int(entry) for entry in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return found
    for number in numbers:
        try:
            if not os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:"):
                continue
            one = borrow(pid, number)
        except OSError:
            continue
        if one.family == socket.AF_INET and wanted(one):
            found.append(one)
        else:
            one.close()
    return found


def deafen(one):
    """Nothing that comes is seen any more, not even that data has come."""
    rule = ctypes.create_string_buffer(struct.pack("HBBI", DROP_ALL, 0, 0, 0))
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(rule))
    one.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def cut(one, kind):
    if kind == "reset":  # a connection to nowhere in the place of this one
        nowhere = struct.pack("HxxIxxxxxxxx", socket.AF_UNSPEC, 0)
        libc.connect(one.fileno(), nowhere, len(nowhere))
    elif kind == "end":
        one.shutdown(socket.SHUT_RDWR)
    else:
        deafen(one)


def cut_one_of(pid, chance=random):
    """Cuts one of that process's connections; says how, or None: it has none."""
    all_of_it = connections(pid)
    if not all_of_it:
        return None
    kind = chance.choice(CUTS)
    try:
        cut(chance.choice(all_of_it), kind)
    except OSError:  # it has ended meanwhile
        kind = None
    for one in all_of_it:
        one.close()
    return kind


def tap_one_of(pid, chance=random):
    """Puts some bytes into what that process sends over one of its connections, or takes some out
    of what it receives; False: there is none."""
    all_of_it = connections(pid)
    touched = 0
    if all_of_it:
        one, count = chance.choice(all_of_it), chance.randint(1, 48)
        try:
            if chance.random() < 0.5:
                touched = one.send(chance.randbytes(count), socket.MSG_DONTWAIT)
            else:
                touched = len(one.recv(count, socket.MSG_DONTWAIT))
        except OSError:  # there is no room, or nothing has come
            pass
    for one in all_of_it:
        one.close()
    return touched > 0


class Parting:
    """Two sides of agents (rank -> pid) that do not reach each other any more, until heal(): what
    connects them breaks, and nobody lets new connections in. Without namespaces, on one host."""

    def __init__(self, agents, side):
        ends = {}
        self.doors = []
        for rank, pid in agents.items():
            self.doors += connections(
                pid, lambda one: one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
            )
            for one in connections(pid):
                ends[one.getsockname(), one.getpeername()] = rank, one
        for door in self.doors:
            deafen(door)
        self.broken = 0
        for (here, there), (rank, one) in ends.items():
            other = ends.get((there, here), (None, None))[0]
            if other is not None and (rank in side) != (other in side):
                cut(one, "reset")
                self.broken += 1
        for _, one in ends.values():
            one.close()

    def heal(self):
        for door in self.doors:
            try:
                door.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
            except OSError:
                pass  # its process has ended
            door.close()
