#!/usr/bin/env python3
"""gateway_test.py [--build DIR] [unittest arguments]

`iwarp gateway --device iwarp0` over the drop-in libraries of a build: Debian's libibverbs and librdmacm as far as the gateway can see, our stack
on the loopback beneath. libnfs reads and writes through two gateways, one of which has the device, and an NFS server: nfs-ganesha. Skips what is
not there.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'dropin'))
from programs import Program, free_port  # noqa: E402

BUILD = os.path.join(ROOT, 'build', 'release')
GANESHA = os.path.join(ROOT, 'scripts', 'ganesha')
ALL_SKIPPED = 77
SIZES = (1, 4097, 1 << 20, 5 << 20)


def own():
    return os.path.join(BUILD, 'bin', 'iwarp')


def over_device(*words):
    return [own(), 'run', '--address', '127.0.0.1', '--', own(), '--debug', 'gateway', '--device', 'iwarp0', *words]


def content(size):
    return hashlib.shake_128(str(size).encode()).digest(size)


class Messages(unittest.TestCase):
    """What is said where it cannot be done."""

    def fails(self, words, says):
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout + done.stderr, says)

    def setUp(self):
        if not os.path.exists(os.path.join(BUILD, 'lib', 'iwarp', 'librdmacm.so.1')):
            self.skipTest('no drop-in libraries in ' + BUILD)

    def test_no_such_device(self):
        words = ['--rdma-listen', '127.0.0.1:0', '--tcp', '127.0.0.1:1']
        self.fails([own(), 'run', '--', own(), 'gateway', '--device', 'mlx9', *words], "no RDMA device 'mlx9'; there are: iwarp0")

    def test_an_address_of_nobody(self):
        self.fails(over_device('--rdma-listen', '192.0.2.1:0', '--tcp', '127.0.0.1:1'), r'cannot listen on 192\.0\.2\.1:0')

    def test_without_the_libraries(self):
        # A folder that the loader looks into first, with files that are no libraries.
        with tempfile.TemporaryDirectory() as folder:
            for name in ('libibverbs.so.1', 'librdmacm.so.1'):
                with open(os.path.join(folder, name), 'w', encoding='ascii') as file:
                    file.write('no library')
            words = ['env', 'LD_LIBRARY_PATH=' + folder, own(), 'gateway', '--device', 'siw0', '--rdma-listen', '127.0.0.1:0', '--tcp', '127.0.0.1:1']
            self.fails(words, 'install the packages libibverbs1, librdmacm1 and ibverbs-providers')


class Transfers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(os.path.join(BUILD, 'lib', 'iwarp', 'librdmacm.so.1')):
            raise unittest.SkipTest('no drop-in libraries in ' + BUILD)
        for program in ('ganesha.nfsd', 'nfs-cp'):
            if not shutil.which(program, path=os.environ.get('PATH', '') + ':/usr/sbin'):
                raise unittest.SkipTest(program + ' is not installed')
        cls.work = tempfile.mkdtemp(dir='/dev/shm')
        cls.export = os.path.join(cls.work, 'export')
        os.mkdir(cls.export)
        for size in SIZES:
            with open(os.path.join(cls.export, f'in-{size}'), 'wb') as file:
                file.write(content(size))
        cls.nfs, cls.mount = free_port(), free_port()
        started = subprocess.run([GANESHA, 'start', '--work', os.path.join(cls.work, 'ganesha'), '--export', cls.export, '--nfs-port', str(cls.nfs),
                                  '--mount-port', str(cls.mount)], capture_output=True, text=True, timeout=90, check=False)
        if started.returncode != 0:
            cls.tearDownClass()
            raise unittest.SkipTest('nfs-ganesha does not run here: ' + started.stderr.strip()[-300:])

    @classmethod
    def tearDownClass(cls):
        subprocess.run([GANESHA, 'stop', '--work', os.path.join(cls.work, 'ganesha')], capture_output=True, timeout=60, check=False)
        shutil.rmtree(cls.work, ignore_errors=True)

    def setUp(self):
        self.programs = []
        self.tcp, self.rdma = free_port(), free_port()
        self.stats = os.path.join(self.work, self.id() + '.json')

    def tearDown(self):
        for program in self.programs:
            program.close()

    def start(self, words, port):
        program = Program(words)
        self.programs.append(program)
        program.wait_for_port(port)
        return program

    def behind(self, own_words=None, listen='127.0.0.1'):
        """The gateway with RPC-over-RDMA clients: over the device, unless own_words are given."""
        words = ['--rdma-listen', f'{listen}:{self.rdma}', '--tcp', f'127.0.0.1:{self.nfs}', '--allow', '127.0.0.0/8,::1']
        if own_words is None:
            return self.start(over_device(*words, '--stats', self.stats), self.rdma)
        return self.start([own(), '--debug', 'gateway', *words], self.rdma)

    def front(self, over=False, to='127.0.0.1', *more):
        """The one with TCP clients."""
        words = ['--tcp-listen', f'127.0.0.1:{self.tcp}', '--rdma', f'{to}:{self.rdma}', '--insecure-ports', *more]
        if over:
            return self.start(over_device(*words, '--stats', self.stats), self.tcp)
        return self.start([own(), '--debug', 'gateway', *words], self.tcp)

    def copy(self, source, target):
        done = subprocess.run(['nfs-cp', source, target], capture_output=True, text=True, timeout=60, check=False)
        logs = '\n'.join(program.text() for program in self.programs)
        self.assertEqual(done.returncode, 0, done.stderr + logs)

    def transfer(self):
        """Each size by NFSv4 out of the server, and by NFSv3 into it."""
        for size in SIZES:
            local = os.path.join(self.work, 'local')
            self.copy(f'nfs://127.0.0.1//export/in-{size}?version=4&nfsport={self.tcp}', local)
            with open(local, 'rb') as file:
                self.assertEqual(file.read(), content(size))
            self.copy(local, f'nfs://127.0.0.1/export/out-{size}?version=3&nfsport={self.tcp}&mountport={self.mount}')
            with open(os.path.join(self.export, f'out-{size}'), 'rb') as file:
                self.assertEqual(file.read(), content(size))
            os.remove(local)  # nfs-cp overwrites nothing
            os.remove(os.path.join(self.export, f'out-{size}'))

    def stop(self, program):
        program.process.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(15), 0, program.text())

    def ended(self, program, connections, end):
        """That many connections, all of which say so at their end."""
        until = time.monotonic() + 10
        while time.monotonic() < until and len(re.findall(r'\bclosed peer=', program.text(None))) < connections:
            time.sleep(0.05)
        text = program.text(None)
        self.assertEqual(len(re.findall(r'established local=\S+ peer=\S+ role=\w+ device=iwarp0 ird=\d+ ord=\d+', text)), connections, text)
        self.assertEqual(re.findall(r'closed peer=\S+ tcp_peer=\S+ end="([^"]*)"', text), [end] * connections, text)

    def counted(self):
        with open(self.stats, encoding='utf-8') as file:
            return json.load(file)

    def test_clients_over_the_device(self):
        behind = self.behind()
        front = self.front()
        self.transfer()
        self.stop(front)
        self.ended(behind, 2 * len(SIZES), 'client closed')
        self.stop(behind)

    def test_clients_over_the_device_by_ipv6(self):
        behind = self.behind(listen='[::1]')
        front = self.front(to='[::1]')
        self.transfer()
        self.stop(front)
        self.stop(behind)

    def test_server_over_the_device(self):
        behind = self.behind(own_words=[])
        front = self.front(over=True)
        self.transfer()
        self.stop(front)
        self.assertRegex(front.text(None), r'role=initiator device=iwarp0')
        self.stop(behind)

    def test_both_sides_over_devices(self):
        behind = self.behind()
        front = self.front(over=True)
        self.transfer()
        self.stop(front)
        self.stop(behind)

    def test_a_client_that_is_killed_is_no_orderly_end(self):
        behind = self.behind()
        front = self.front()
        source = f'nfs://127.0.0.1//export/in-{SIZES[-1]}?version=4&nfsport={self.tcp}'
        with subprocess.Popen(['nfs-cat', source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
            reader.stdout.read(1)
            front.process.send_signal(signal.SIGKILL)
            reader.kill()
        until = time.monotonic() + 10
        while time.monotonic() < until and 'closed peer=' not in behind.text(None):
            time.sleep(0.05)
        self.assertIn('closed peer=', behind.text(None))
        # And it goes on.
        self.front().wait_for_port(self.tcp)
        self.transfer()
        self.stop(behind)

    def test_nobody_listens(self):
        front = self.front(over=True)
        done = subprocess.run(['nfs-ls', f'nfs://127.0.0.1//export?version=4&nfsport={self.tcp}'], capture_output=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        until = time.monotonic() + 10
        while time.monotonic() < until and 'refused tcp_peer=' not in front.text(None):
            time.sleep(0.05)
        self.assertIn('refused tcp_peer=', front.text(None))
        self.stop(front)

    def test_ends_with_clients(self):
        """SIGTERM while a mount is idle: the end is the gateway's own, and in time."""
        behind = self.behind()
        self.front()
        with subprocess.Popen(['nfs-cat', f'nfs://127.0.0.1//export/in-{SIZES[-1]}?version=4&nfsport={self.tcp}'], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as reader:
            reader.stdout.read(1)
            self.stop(behind)
            reader.kill()


def main():
    global BUILD
    arguments = sys.argv[1:]
    if arguments[:1] == ['--build'] and len(arguments) > 1:
        BUILD = os.path.abspath(arguments[1])
        del arguments[:2]
    result = unittest.main(argv=[sys.argv[0]] + arguments, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(ALL_SKIPPED if len(result.skipped) == result.testsRun else 0)


if __name__ == '__main__':
    main()
