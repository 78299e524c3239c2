"""Programs at both ends of a connection over the loopback: what the tests, scripts/verbs-matrix and bench/verbs start them with."""
import fcntl
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

LISTEN = '0A'
STARTS = 20  # seconds until a server listens, at most


def free_port():
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(('::', 0))
        return probe.getsockname()[1]


def listens(port):
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        with open(table, encoding='ascii') as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if int(fields[1].rsplit(':', 1)[1], 16) == port and fields[3] == LISTEN:
                    return True
    return False


def placed(words, **values):
    """The words with each name replaced where it stands as a word of its own: placed(['-p', 'PORT'], PORT=7174)."""
    out = [str(word) for word in words]
    for name, value in values.items():
        out = [re.sub(rf'\b{name}\b', str(value), word) for word in out]
    return out


# Of rping, at either end: its exit status is 0 as well where the connection was lost in the midst of its pings.
RPING_GAVE_UP = re.compile(r'wait for (?!RDMA_READ_ADV)|mismatch|post send error|completion failed|bogus')


def is_rping(words):
    """rdma-core's, and not `iwarp rping`, whose exit status says it."""
    names = [os.path.basename(word) for word in words]
    return 'rping' in names and 'iwarp' not in names[:names.index('rping')][-1:]


class DoesNotListen(Exception):
    pass


class Program:
    """One program in a session of its own, its output, not buffered, in a file. Close it: that also ends what it has started."""

    def __init__(self, words, environment=None, directory=None):
        self.words = [str(word) for word in words]
        self.output = tempfile.TemporaryFile(mode='w+', dir=directory, errors='replace')
        # The program has the same place in the file as text(): it writes at the end, wherever that one reads.
        fcntl.fcntl(self.output, fcntl.F_SETFL, fcntl.fcntl(self.output, fcntl.F_GETFL) | os.O_APPEND)
        try:
            self.process = subprocess.Popen(['stdbuf', '-o0', *self.words], stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
                                            cwd=directory, env=environment, start_new_session=True)
        except OSError:
            self.output.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def runs(self):
        return self.process.poll() is None

    def wait_for_port(self, port, limit=STARTS):
        until = time.monotonic() + limit
        while not listens(port):
            if not self.runs() or time.monotonic() > until:
                raise DoesNotListen(f'{" ".join(self.words)} does not listen: {self.text()}')
            time.sleep(0.01)

    def wait(self, limit):
        """The exit code; 'hangs' past the limit, in seconds; 'gave up' of an rping that has, whatever its exit code."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return 'hangs'
        return 'gave up' if code == 0 and is_rping(self.words) and RPING_GAVE_UP.search(self.text(None)) else code

    def text(self, last=3000):
        """The last characters of the output; all of them: None."""
        self.output.seek(0)
        said = self.output.read()
        return said if last is None else said[-last:]

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def close(self):
        self.stop()
        self.output.close()
