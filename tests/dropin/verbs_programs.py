"""What the tests of programs over the drop-in libraries share."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, 'build', 'release')
REPEAT = 1
LIMIT = 60  # seconds for a program that is not to hang
LISTEN = '0A'


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


def repeats():
    return range(REPEAT)


def libraries():
    return os.path.join(BUILD, 'lib', 'iwarp')


class Program:
    """A program over the drop-in libraries, with its output in a file."""

    def __init__(self, words, **more):
        self.words = [str(word) for word in words]
        self.output = tempfile.TemporaryFile(mode='w+')
        environment = {**os.environ, 'LD_LIBRARY_PATH': libraries(), 'LD_BIND_NOW': '1', **more}
        if '/' in self.words[0]:  # of the build, which needs none of these
            environment.pop('LD_LIBRARY_PATH')
        self.process = subprocess.Popen(['stdbuf', '-o0'] + self.words, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, env=environment)

    def wait_for_port(self, port):
        until = time.monotonic() + LIMIT
        while not listens(port):
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f'{self.words} does not listen: {self.text()}')
            time.sleep(0.01)

    def wait(self, limit=LIMIT):
        """The exit code; 'hangs' past the limit."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return 'hangs'

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def text(self):
        self.output.seek(0)
        return self.output.read()[-3000:]

    def close(self):
        self.stop()
        self.output.close()


class Pairs(unittest.TestCase):
    ENVIRONMENT = {}  # besides the usual one

    def setUp(self):
        if not os.path.exists(os.path.join(libraries(), 'librdmacm.so.1')):
            self.skipTest('no drop-in libraries in ' + BUILD)

    def pair(self, server, client, server_code=0, client_code=0, says=None):
        """Each a list of words, with PORT where the port belongs. One of the two says what `says` matches."""
        for words in (server, client):
            if not shutil.which(words[0]):
                self.skipTest(words[0] + ' is not installed')
        for turn in repeats():
            port = free_port()

            def words_of(words, at=port):
                return [re.sub(r'\bPORT\b', str(at), word) for word in words]

            one = Program(words_of(server), **self.ENVIRONMENT)
            try:
                one.wait_for_port(port)
                two = Program(words_of(client), **self.ENVIRONMENT)
                try:
                    codes = two.wait(), one.wait(10)
                    text = f'turn {turn}: {codes}\n--- {two.words}\n{two.text()}\n--- {one.words}\n{one.text()}'
                    self.assertEqual(codes, (client_code, server_code), text)
                    if says:
                        self.assertRegex(one.text() + two.text(), says, text)
                finally:
                    two.close()
            finally:
                one.close()


def own():
    return os.path.join(BUILD, 'bin', 'iwarp')


class PerftestCases:
    """Of those who say how by run_pair(program, *options)."""

    def test_write_bandwidth(self):
        self.run_pair('ib_write_bw', '-n', '1000')

    def test_read_bandwidth(self):
        self.run_pair('ib_read_bw', '-n', '1000')

    def test_send_bandwidth(self):
        self.run_pair('ib_send_bw', '-n', '1000')

    def test_send_latency(self):
        self.run_pair('ib_send_lat', '-n', '1000')

    def test_write_latency(self):
        self.run_pair('ib_write_lat', '-n', '1000')

    def test_read_latency(self):
        self.run_pair('ib_read_lat', '-n', '1000')

    def test_many_queue_pairs(self):
        self.run_pair('ib_write_bw', '-n', '1000', '-q', '8')

    def test_both_directions(self):
        self.run_pair('ib_send_bw', '-n', '1000', '-b')


def main():
    global BUILD, REPEAT
    arguments = sys.argv[1:]
    while arguments[:1] in (['--build'], ['--repeat']) and len(arguments) > 1:
        if arguments[0] == '--build':
            BUILD = os.path.abspath(arguments[1])
        else:
            REPEAT = int(arguments[1])
        del arguments[:2]
    unittest.main(argv=[sys.argv[0]] + arguments)
