#!/usr/bin/env python3
"""rdmacm_test.py [--build DIR] [--repeat N] [unittest arguments]

Debian's rdma_cm programs (rdmacm-utils, perftest), unmodified, over the drop-in libraries of a build: servers and clients on the loopback,
both exit codes. A program that is not installed, or a build without the drop-in libraries, skips its tests.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from verbs_programs import free_port, listens

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, 'build', 'release')
REPEAT = 1
LIMIT = 60  # seconds for a program that is not to hang


class Program:
    """A program over the drop-in libraries, with its output in a file."""

    def __init__(self, words, **more):
        self.words = [str(word) for word in words]
        self.output = tempfile.TemporaryFile(mode='w+')
        libraries = os.path.join(BUILD, 'lib', 'iwarp')
        environment = dict(os.environ, LD_LIBRARY_PATH=libraries, LD_BIND_NOW='1', **more)
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
        if not os.path.exists(os.path.join(BUILD, 'lib', 'iwarp', 'librdmacm.so.1')):
            self.skipTest('no drop-in libraries in ' + BUILD)

    def pair(self, server, client, server_code=0, client_code=0, says=None):
        """Each a list of words, with PORT where the port belongs."""
        for words in (server, client):
            if not shutil.which(words[0]):
                self.skipTest(words[0] + ' is not installed')
        for turn in range(REPEAT):
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
                        self.assertRegex(two.text(), says, text)
                finally:
                    two.close()
            finally:
                one.close()


def own():
    return os.path.join(BUILD, 'bin', 'iwarp')


class Rping(Pairs):
    OPTIONS = ['-C', '100', '-V', '-S', '4000', '-p', 'PORT']

    def test_itself(self):
        self.pair(['rping', '-s'] + self.OPTIONS, ['rping', '-c', '-a', '127.0.0.1'] + self.OPTIONS)

    def test_ipv6(self):
        self.pair(['rping', '-s', '-a', '::1'] + self.OPTIONS, ['rping', '-c', '-a', '::1'] + self.OPTIONS)

    def test_any_ipv6_address_is_any_address(self):
        self.pair(['rping', '-s', '-a', '::'] + self.OPTIONS, ['rping', '-c', '-a', '127.0.0.1'] + self.OPTIONS)

    def test_source_address(self):
        self.pair(['rping', '-s'] + self.OPTIONS, ['rping', '-c', '-I', '127.0.0.2', '-a', '127.0.0.1'] + self.OPTIONS)

    def test_long_messages(self):
        options = ['-C', '1000', '-V', '-S', '65535', '-p', 'PORT']
        self.pair(['rping', '-s'] + options, ['rping', '-c', '-a', '127.0.0.1'] + options)

    def test_against_iwarp_as_server(self):
        self.pair([own(), 'rping', '-s', '-V', '-p', 'PORT'], ['rping', '-c', '-a', '127.0.0.1'] + self.OPTIONS)

    def test_against_iwarp_as_client(self):
        self.pair(['rping', '-s'] + self.OPTIONS, [own(), 'rping', '-c', '-a', '127.0.0.1'] + self.OPTIONS)

    def test_own_queue_pairs(self):
        self.pair(['rping', '-q', '-s'] + self.OPTIONS, ['rping', '-q', '-c', '-a', '127.0.0.1'] + self.OPTIONS)

    def test_many_clients(self):
        if not shutil.which('rping'):
            self.skipTest('rping is not installed')
        for _ in range(REPEAT):
            self.serve_many()

    def serve_many(self):
        port = free_port()
        clients = []
        server = Program(['rping', '-s', '-P', '-p', port])
        try:
            server.wait_for_port(port)
            for _ in range(20):
                # The server forgets a request when the next one comes before it has looked at it: one by one.
                clients.append(Program(['rping', '-c', '-a', '127.0.0.1', '-V', '-S', 4000, '-C', 1000, '-p', port]))
                time.sleep(0.05)
            codes = [client.wait() for client in clients]
            self.assertEqual(codes, [0] * 20, '\n'.join(client.text() for client in clients) + server.text())
            self.assertIsNone(server.process.poll(), server.text())
        finally:
            for client in clients:
                client.close()
            server.close()

    def test_nobody_listens(self):
        if not shutil.which('rping'):
            self.skipTest('rping is not installed')
        for _ in range(REPEAT):
            client = Program(['rping', '-c', '-a', '127.0.0.1', '-C', 1, '-p', free_port()])
            try:
                self.assertNotIn(client.wait(), (0, 'hangs'))
                self.assertIn('RDMA_CM_EVENT_REJECTED', client.text())
            finally:
                client.close()


class Run(Pairs):
    """`iwarp run` gives a program the libraries, or says why it cannot."""

    def run_it(self, *words, **more):
        return subprocess.run([own(), 'run', *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)

    def test_environment(self):
        done = self.run_it('--crc', 'off', '--address', '127.0.0.1', '--preload', '--', 'env', env={'PATH': os.environ['PATH'], 'LD_LIBRARY_PATH': '/x'})
        libraries = os.path.join(BUILD, 'lib', 'iwarp')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'LD_LIBRARY_PATH={libraries}:/x\n', done.stdout)
        self.assertIn(f'LD_PRELOAD={libraries}/libibverbs.so.1:{libraries}/librdmacm.so.1\n', done.stdout)
        self.assertIn('IWARP_CRC=off\n', done.stdout)
        self.assertIn('device iwarp0, an RNIC of iWARP, at 127.0.0.1', done.stderr)

    def test_exit_status_and_arguments(self):
        done = self.run_it('--quiet', '--', 'sh', '-c', 'echo "$0" "$1"; exit 7', 'a b', '-R')
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, 'a b -R\n', ''))

    def test_what_cannot_run(self):
        self.assertEqual(self.run_it('--', 'no-such-program').returncode, 127)
        if os.path.exists('/sbin/ldconfig'):
            done = self.run_it('--', '/sbin/ldconfig', '-p')
            self.assertEqual(done.returncode, 126)
            self.assertIn('linked statically', done.stderr)
        with tempfile.NamedTemporaryFile() as program:
            os.chmod(program.name, 0o4755)
            if os.geteuid() == 0:
                os.chown(program.name, 1, -1)
                os.chmod(program.name, 0o4755)
                done = self.run_it('--', program.name)
                self.assertEqual(done.returncode, 126)
                self.assertIn('setuid', done.stderr)

    def test_rping(self):
        self.pair([own(), 'run', '--', 'rping', '-s', '-C', '10', '-p', 'PORT'],
                  [own(), 'run', '--crc', 'off', '--', 'rping', '-c', '-a', '127.0.0.1', '-C', '10', '-p', 'PORT'])


class Others(Pairs):
    def test_ucmatose(self):
        options = ['-c', '10', '-C', '100', '-p', 'PORT']
        self.pair(['ucmatose'] + options, ['ucmatose', '-s', '127.0.0.1'] + options)

    def test_ucmatose_migrates(self):
        options = ['-c', '10', '-C', '100', '-m', '-p', 'PORT']
        self.pair(['ucmatose'] + options, ['ucmatose', '-s', '127.0.0.1'] + options)

    def test_ucmatose_many_connections(self):
        options = ['-c', '100', '-C', '100', '-S', '1000', '-p', 'PORT']
        self.pair(['ucmatose'] + options, ['ucmatose', '-s', '127.0.0.1'] + options)

    def test_rdma_client(self):
        self.pair(['rdma_server', '-p', 'PORT'], ['rdma_client', '-s', '127.0.0.1', '-p', 'PORT'])

    def test_rdma_xclient(self):
        self.pair(['rdma_xserver', '-p', 'PORT'], ['rdma_xclient', '-s', '127.0.0.1', '-p', 'PORT'])


class Perftest(Pairs):
    def run_pair(self, program, *options):
        words = [program, '-R', '-F', '-p', 'PORT'] + list(options)
        self.pair(words, words + ['127.0.0.1'])

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

    @unittest.skip('perftest counts credits of its own on iWARP, and may wait for a completion that it never asked for: docs/VERBS.md')
    def test_send_with_events(self):
        self.run_pair('ib_send_bw', '-n', '1000', '-e')

    def test_all_sizes(self):
        self.run_pair('ib_send_lat', '-n', '100', '-a')

    def test_many_queue_pairs(self):
        self.run_pair('ib_write_bw', '-n', '1000', '-q', '8')

    def test_both_directions(self):
        self.run_pair('ib_send_bw', '-n', '1000', '-b')

    def test_lists(self):
        self.run_pair('ib_write_bw', '-n', '1024', '-l', '16', '-s', '64')

    def test_inline(self):
        self.run_pair('ib_send_lat', '-n', '1000', '-I', '64')

    def test_read_latency(self):
        self.run_pair('ib_read_lat', '-n', '1000')


class Atomics(Pairs):
    """RFC 7306 is agreed on."""

    ENVIRONMENT = {'IWARP_RFC7306': 'on'}

    def run_pair(self, program, kind):
        words = [program, '-R', '-F', '-p', 'PORT', '-n', '1000', '-A', kind]
        self.pair(words, words + ['127.0.0.1'])

    def test_fetch_and_add_bandwidth(self):
        self.run_pair('ib_atomic_bw', 'FETCH_AND_ADD')

    def test_compare_and_swap_bandwidth(self):
        self.run_pair('ib_atomic_bw', 'CMP_AND_SWAP')

    def test_latency(self):
        self.run_pair('ib_atomic_lat', 'FETCH_AND_ADD')

    def test_rping_of_the_library_sees_no_more_of_it_than_private_data(self):
        options = ['-C', '10', '-V', '-p', 'PORT']
        self.pair([own(), 'rping', '-s', '-V', '-p', 'PORT'], ['rping', '-c', '-a', '127.0.0.1'] + options)
        self.pair(['rping', '-s'] + options, [own(), 'rping', '-c', '-a', '127.0.0.1'] + options)


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


if __name__ == '__main__':
    main()
