"""Who answers over HTTP in an agent's place."""
import json
import os
import socket
import threading

OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


class Answerer:
    """Tells whoever asks `said`: bytes as they are, anything else as JSON; None: it says nothing.
    path: of a socket; else it is at `place`."""

    def __init__(self, said, path=None):
        self.said = said if said is None or isinstance(said, bytes) else reply(said)
        self.path, self.open = path, []
        if path is None:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.place = f"127.0.0.1:{self.listener.getsockname()[1]}"
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.listener.listen(4)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                guest, _ = self.listener.accept()
            except OSError:
                return
            if self.said is None:
                self.open.append(guest)
                continue
            with guest:
                guest.recv(4096)
                guest.sendall(self.said)

    def close(self):
        for one in (self.listener, *self.open):
            one.close()
        if self.path is not None:
            os.remove(self.path)


def reply(said):
    return OK + (said if isinstance(said, bytes) else json.dumps(said).encode())
