#!/usr/bin/env python3
"""rdmacm_test.py [--build DIR] [--repeat N] [unittest arguments]

Debian's rdma_cm programs (rdmacm-utils, perftest), unmodified, over the drop-in libraries of a build: servers and clients on the loopback,
both exit codes. A program that is not installed, or a build without the drop-in libraries, skips its tests.
"""
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from verbs_programs import Pairs, PerftestCases, Program, free_port, libraries, main, own, repeats


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

    def test_a_port_serves_again_at_once(self):
        port = free_port()
        for _ in range(3):
            self.pair(['rping', '-s'] + self.OPTIONS, ['rping', '-c', '-a', '127.0.0.1'] + self.OPTIONS, port=port)

    def test_own_queue_pairs(self):
        self.pair(['rping', '-q', '-s'] + self.OPTIONS, ['rping', '-q', '-c', '-a', '127.0.0.1'] + self.OPTIONS)

    def test_many_clients(self):
        if not shutil.which('rping'):
            self.skipTest('rping is not installed')
        for _ in repeats():
            self.serve_many()

    def serve_many(self):
        port = free_port()
        clients = []
        server = Program(['rping', '-s', '-P', '-S', 4000, '-p', port])
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
        for _ in repeats():
            client = Program(['rping', '-c', '-a', '127.0.0.1', '-C', 1, '-p', free_port()])
            try:
                self.assertNotIn(client.wait(), (0, 'hangs'))
                self.assertIn('RDMA_CM_EVENT_REJECTED', client.text())
            finally:
                client.close()


class Isal(Pairs):
    """libisal.so.2 is loaded where it can be, and done without where it cannot."""

    def test_with_and_without(self):
        if not shutil.which('rping'):
            self.skipTest('rping is not installed')
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'libisal.so.2'), 'w', encoding='ascii') as broken:
                broken.write('this is no library\n' * 100)
            paths = {'with': libraries(), 'without': f'{folder}:{libraries()}'}
            for server, client in (('with', 'without'), ('without', 'with'), ('without', 'without')):
                self.ping(paths, server, client)

    def maps_isal(self, program, wanted):
        """Whether it has loaded ISA-L, which may come a moment after it listens."""
        until = time.monotonic() + 10
        while True:
            with open(f'/proc/{program.process.pid}/maps', encoding='ascii') as maps:
                mapped = 'libisal.so.2' in maps.read()
            if mapped or not wanted or time.monotonic() > until:
                return mapped
            time.sleep(0.01)

    def ping(self, paths, server, client):
        port = free_port()
        options = ['-C', 100, '-V', '-S', 4000, '-p', port]
        one = Program(['rping', '-s'] + options, LD_LIBRARY_PATH=paths[server], IWARP_CRC='on')
        try:
            one.wait_for_port(port)
            mapped = self.maps_isal(one, server == 'with' and has_isal())
            if server == 'without' or has_isal():
                self.assertEqual(mapped, server == 'with', f'{server} ISA-L')
            two = Program(['rping', '-c', '-a', '127.0.0.1'] + options, LD_LIBRARY_PATH=paths[client], IWARP_CRC='on')
            try:
                codes = two.wait(), one.wait(10)
                self.assertEqual(codes, (0, 0), f'{server}, {client}: {two.text()} {one.text()}')
            finally:
                two.close()
        finally:
            one.close()


def has_isal():
    try:
        ctypes.CDLL('libisal.so.2')
    except OSError:
        return False
    return True


class Trace(Pairs):
    """`iwarp run --trace FILE`: captures that `iwarp trace` explains."""

    def setUp(self):
        super().setUp()
        if not shutil.which('rping'):
            self.skipTest('rping is not installed')
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, 'some capture')

    def explained(self, file):
        done = subprocess.run([own(), 'trace', file], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def ping(self, *client, server=('-C', '10', '-S', '2000'), trace_server=False):
        """Runs `iwarp run --trace` for the client, or for the server; the other end goes without. Gives the two, which are to be closed."""
        port = free_port()
        run = [own(), 'run', '--quiet', '--trace', self.file, '--']
        one = Program((run if trace_server else []) + ['rping', '-s', '-p', port, *server])
        self.addCleanup(one.close)
        one.wait_for_port(port)
        two = Program(([] if trace_server else run) + [re.sub(r'\bPORT\b', str(port), word) for word in client])
        self.addCleanup(two.close)
        return one, two

    def messages(self, file):
        text = self.explained(file)
        self.assertNotIn('BadCrc', text)
        self.assertNotIn('Lost', text)
        return {word: len(re.findall(rf' rdmap {word}\(', text)) for word in ('Send', 'ReadRequest', 'ReadResponse', 'Write')}

    def test_a_program(self):
        one, two = self.ping('rping', '-c', '-a', '127.0.0.1', '-p', 'PORT', '-C', '10', '-S', '2000', '-V')
        self.assertEqual((two.wait(), one.wait(10)), (0, 0), two.text())
        self.assertEqual(os.listdir(self.folder.name), ['some capture'])
        seen = self.messages(self.file)
        self.assertGreaterEqual(seen['Send'], 40)
        self.assertGreaterEqual(seen['ReadRequest'], 10)
        self.assertGreaterEqual(seen['Write'], 10)

    def test_ucmatose_sends_what_it_says(self):
        # It looks at no status of a completion, so that its exit status tells nothing of a connection that was lost.
        if not shutil.which('ucmatose'):
            self.skipTest('ucmatose is not installed')
        port = free_port()
        options = ['-p', port, '-c', 10, '-C', 100, '-S', 1000]
        with Program([own(), 'run', '--quiet', '--trace', self.file, '--', 'ucmatose', *options]) as one:
            one.wait_for_port(port)
            with Program(['ucmatose', '-s', '127.0.0.1', *options]) as two:
                self.assertEqual((two.wait(), one.wait(10)), (0, 0), two.text())
        self.assertEqual(self.messages(self.file)['Send'], 2 * 10 * 100)
        self.assertNotIn(' Terminate(', self.explained(self.file))

    def test_programs_that_it_starts(self):
        one, two = self.ping('sh', '-c', 'rping -c -a 127.0.0.1 -p PORT -C 10 -S 2000 -V; exit $?')
        self.assertEqual((two.wait(), one.wait(10)), (0, 0), two.text())
        files = os.listdir(self.folder.name)
        self.assertEqual(len(files), 1, files)
        self.assertRegex(files[0], r'^some capture\.\d+$')
        self.assertGreaterEqual(self.messages(os.path.join(self.folder.name, files[0]))['Send'], 40)

    def test_a_program_that_is_killed(self):
        one, two = self.ping('rping', '-c', '-a', '127.0.0.1', '-p', 'PORT', '-C', '10', '-S', '2000', server=('-P', '-S', '2000'), trace_server=True)
        self.assertEqual(two.wait(), 0, two.text())
        one.stop()
        self.assertGreaterEqual(self.messages(self.file)['Send'], 40)

    def test_a_file_that_cannot_be_written(self):
        self.file = '/nowhere/at/all'
        one, two = self.ping('rping', '-c', '-a', '127.0.0.1', '-p', 'PORT', '-C', '10', '-S', '2000', '-V')
        self.assertEqual((two.wait(), one.wait(10)), (0, 0), two.text())
        self.assertIn('iwarp: trace /nowhere/at/all: No such file or directory', two.text())


class Run(Pairs):
    """`iwarp run` gives a program the libraries, or says why it cannot."""

    def run_it(self, *words, **more):
        return subprocess.run([own(), 'run', *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)

    def test_environment(self):
        done = self.run_it('--crc', 'off', '--address', '127.0.0.1', '--preload', '--fpdu', '16k', '--', 'env', env={'PATH': os.environ['PATH'], 'LD_LIBRARY_PATH': '/x'})
        at = libraries()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'LD_LIBRARY_PATH={at}:/x\n', done.stdout)
        self.assertIn(f'LD_PRELOAD={at}/libibverbs.so.1:{at}/librdmacm.so.1\n', done.stdout)
        self.assertIn('IWARP_CRC=off\n', done.stdout)
        self.assertIn('IWARP_FPDU=16k\n', done.stdout)
        self.assertNotIn('IWARP_TRACE', done.stdout)
        self.assertIn('device iwarp0, an RNIC of iWARP, at 127.0.0.1', done.stderr)

    def test_programs_presented_roce_find_the_files_of_a_device(self):
        if os.path.exists('/dev/infiniband'):
            self.skipTest('this host has such files')
        for present, path, kind, there in (('roce', '/dev/infiniband/uverbs0', '-c', 0), ('roce', '/dev/infiniband', '-d', 0), ('roce', '/dev/infinibandx', '-e', 1),
                                           ('iwarp', '/dev/infiniband', '-e', 1)):
            done = self.run_it('--quiet', '--present', present, '--', 'test', kind, path)
            self.assertEqual(done.returncode, there, f'{present} {path}: {done.stderr}')

    def test_values_that_it_does_not_know(self):
        for option in ('--fpdu=1448', '--crc=maybe', '--present=siw', '--address=here'):
            self.assertNotEqual(self.run_it(option, '--', 'true').returncode, 0, option)

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


class Perftest(PerftestCases, Pairs):
    def run_pair(self, program, *options):
        words = [program, '-R', '-F', '-p', 'PORT'] + list(options)
        self.pair(words, words + ['127.0.0.1'])

    def test_send_with_events(self):
        # With as many Receives as messages: where its window of credits closes perftest waits for what never comes, docs/VERBS.md.
        self.run_pair('ib_send_bw', '-n', '1000', '-e', '-r', '1100')

    def test_all_sizes(self):
        self.run_pair('ib_send_lat', '-n', '100', '-a')

    def test_lists(self):
        self.run_pair('ib_write_bw', '-n', '1024', '-l', '16', '-s', '64')

    def test_inline(self):
        self.run_pair('ib_send_lat', '-n', '1000', '-I', '64')


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


if __name__ == '__main__':
    main()
