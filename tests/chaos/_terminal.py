"""A command on a terminal of its own."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

ESCAPE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


class Terminal:
    """Its process, and in `bytes` what it has drawn. more: options of Popen."""

    def __init__(self, words, lines=40, columns=80, variables=(), **more):
        self.fd, other = pty.openpty()
        self.bytes = b""
        self.resize(lines, columns)
        own = {key: v for key, v in os.environ.items() if key not in ("LINES", "COLUMNS")}
        ends = {"stdin": other, "stdout": other, "stderr": other, **more}
        variables = {**own, "TERM": "xterm", "LC_ALL": "C.UTF-8", **dict(variables)}
        self.process = subprocess.Popen(words, env=variables, start_new_session=True, **ends)
        os.close(other)

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, pause_s=0.05):
        """Until it pauses; False: it has ended."""
        while select.select([self.fd], [], [], pause_s)[0]:
            try:
                self.bytes += os.read(self.fd, 1 << 16)
            except OSError:
                return False
        return True

    def read_all(self):
        """Its exit code, and all that it drew."""
        while self.read(1):
            pass
        os.close(self.fd)
        return self.process.wait(60), self.bytes.decode()
