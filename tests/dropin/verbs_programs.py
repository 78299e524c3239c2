"""What the tests of programs over the drop-in libraries share."""
import os
import shutil
import sys
import unittest

import programs
from programs import free_port, listens, placed  # noqa: F401: for those who import this

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, 'build', 'release')
REPEAT = 1
LIMIT = 60  # seconds for a program that is not to hang
ALL_SKIPPED = 77  # exit status, as ctest has it


def repeats():
    return range(REPEAT)


def libraries():
    return os.path.join(BUILD, 'lib', 'iwarp')


class Program(programs.Program):
    """A program over the drop-in libraries."""

    def __init__(self, words, **more):
        environment = {**os.environ, 'LD_LIBRARY_PATH': libraries(), 'LD_BIND_NOW': '1', **more}
        if '/' in str(words[0]):  # of the build, which needs none of these
            environment.pop('LD_LIBRARY_PATH')
        super().__init__(words, environment)

    def wait(self, limit=LIMIT):
        return super().wait(limit)


class Pairs(unittest.TestCase):
    ENVIRONMENT = {}  # besides the usual one

    def setUp(self):
        if not os.path.exists(os.path.join(libraries(), 'librdmacm.so.1')):
            self.skipTest('no drop-in libraries in ' + BUILD)

    def pair(self, server, client, server_code=0, client_code=0, says=None, port=None):
        """Each a list of words, with PORT where the port belongs, or one that is given. One of the two says what `says` matches."""
        for words in (server, client):
            if not shutil.which(words[0]):
                self.skipTest(words[0] + ' is not installed')
        for turn in repeats():
            at = port or free_port()
            one = Program(placed(server, PORT=at), **self.ENVIRONMENT)
            try:
                one.wait_for_port(at)
                two = Program(placed(client, PORT=at), **self.ENVIRONMENT)
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
    result = unittest.main(argv=[sys.argv[0]] + arguments, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    # A run that has tried nothing has not passed.
    sys.exit(ALL_SKIPPED if len(result.skipped) == result.testsRun else 0)
