"""Slow clients of an agent's pages: each says its request piece by piece, and takes the answer so;
who is answered, sent away or cut off comes again."""
import collections
import heapq
import itertools
import math
import os
import random
import socket
import threading
import time

PATHS = ("/status", "/metrics", "/", "/events")
PIECE, ENOUGH = 1024, 1 << 14  # bytes that are taken at a time, and of a stream in all


def costs(pid):
    """Descriptors and bytes of memory of a process."""
    with open(f"/proc/{pid}/statm") as file:
        pages = int(file.read().split()[1])
    return len(os.listdir(f"/proc/{pid}/fd")), pages * os.sysconf("SC_PAGE_SIZE")


class Client:
    def __init__(self, port, path, piece):
        self.request, self.piece = f"GET {path} HTTP/1.0\r\n\r\n".encode(), piece
        self.heard = b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))

    def act(self):
        """One piece either way. False: that was the last."""
        try:
            piece = self.socket.recv(PIECE)
            self.heard += piece
            return piece != b"" and len(self.heard) < ENOUGH
        except BlockingIOError:
            pass
        except OSError:
            return False
        try:
            sent = self.socket.send(self.request[: self.piece])
            self.request = self.request[sent:]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def outcome(self):
        """By the status; none: it was closed, as for somebody who came later."""
        words = self.heard.split(maxsplit=2)
        return words[1].decode() if len(words) > 1 else "closed"


class SlowClients(threading.Thread):
    """So many at once, each of which does something each `gap_s`, until so many `requests` are
    over. pieces: bytes that are sent at a time, of one client after the other."""

    def __init__(self, port, count, requests=math.inf, gap_s=0.4, pieces=(1, 9, 64)):
        super().__init__(daemon=True)
        self.port, self.count, self.requests, self.gap_s = port, count, requests, gap_s
        self.kinds = itertools.cycle(itertools.product(pieces, PATHS))
        self.open, self.begun, self.over = True, 0, collections.Counter()

    def begin(self):
        piece, path = next(self.kinds)
        self.begun += 1
        return Client(self.port, path, piece)

    def run(self):
        """there: (when it acts next, its number, who)"""
        chance, there = random.Random(self.count), []
        while self.open and self.over.total() < self.requests:
            while len(there) < self.count and self.begun < self.requests:
                at = time.monotonic() + chance.uniform(0, self.gap_s)
                heapq.heappush(there, (at, self.begun, self.begin()))
            at, number, client = there[0]
            if (left := at - time.monotonic()) > 0:
                time.sleep(min(left, 0.05))
            elif client.act():
                at += chance.uniform(0.5, 1.5) * self.gap_s
                heapq.heapreplace(there, (at, number, client))
            else:
                heapq.heappop(there)
                client.socket.close()
                self.over[client.outcome()] += 1
        for _, _, client in there:
            client.socket.close()

    def end(self):
        self.open = False
        self.join()
