#!/usr/bin/env python3
"""rpc_test.py [--build DIR] [unittest arguments]

rpc::Client and rpc::Server over a device, as examples/rpc_rnic.cc has them, in two processes over the drop-in libraries of a build: Debian's
libibverbs and librdmacm as far as they can see, our stack on the loopback beneath.
"""
import os
import signal
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'dropin'))
from programs import Program, free_port  # noqa: E402

BUILD = os.path.join(ROOT, 'build', 'release')
ALL_SKIPPED = 77
GOES_WELL = '1000 sums make 999000; 1048576 octets came back reversed\n'


def rnic(*words, device='iwarp0'):
    own = os.path.join(BUILD, 'bin', 'iwarp')
    return [own, 'run', '--address', '127.0.0.1', '--', os.path.join(BUILD, 'bin', 'example_rpc_rnic'), device, *map(str, words)]


class OverTheDevice(unittest.TestCase):
    def setUp(self):
        for needed in ('lib/iwarp/librdmacm.so.1', 'bin/example_rpc_rnic', 'bin/iwarp'):
            if not os.path.exists(os.path.join(BUILD, needed)):
                self.skipTest(f'no {needed} in {BUILD}')
        self.port = free_port()

    def serve(self, address='127.0.0.1'):
        server = Program(rnic('serve', address, self.port))
        self.addCleanup(server.close)
        server.wait_for_port(self.port)
        return server

    def call(self, address='127.0.0.1'):
        return subprocess.run(rnic('call', address, self.port), capture_output=True, text=True, timeout=60, check=False)

    def stop(self, server):
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 0, server.text())
        return server.text(None)

    def test_clients_and_a_server(self):
        server = self.serve()
        for _ in range(3):
            done = self.call()
            self.assertEqual((done.returncode, done.stdout), (0, GOES_WELL), done.stderr + server.text())
        said = self.stop(server)
        self.assertIn(f'listening at port {self.port} of iwarp0', said)
        self.assertRegex(said, r'\b30\d\d Calls on 3 connections')

    def test_by_ipv6(self):
        server = self.serve('::1')
        done = self.call('::1')
        self.assertEqual((done.returncode, done.stdout), (0, GOES_WELL), done.stderr + server.text())
        self.stop(server)

    def test_by_name(self):
        server = self.serve()
        done = self.call('localhost')
        self.assertEqual((done.returncode, done.stdout), (0, GOES_WELL), done.stderr + server.text())
        self.stop(server)

    def test_nobody_listens(self):
        done = self.call()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, 'nobody listens|nothing listens')

    def test_no_such_device(self):
        done = subprocess.run(rnic('call', '127.0.0.1', self.port, device='mlx9'), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no RDMA device 'mlx9'; there are: iwarp0", done.stderr)

    def test_an_address_of_nobody(self):
        done = subprocess.run(rnic('serve', '192.0.2.1', self.port), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('no RDMA device has that address', done.stderr)


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
