#!/usr/bin/env python3
"""rsocket_programs_test.py [--build DIR] [--repeat N] [unittest arguments]

Debian's programs of rsockets (rdmacm-utils), unmodified, over the drop-in libraries of a build.
"""
import filecmp
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import verbs_programs as shared  # noqa: E402


class Rstream(shared.Pairs):
    def run_pair(self, *options, at='127.0.0.1'):
        words = ['rstream', '-p', 'PORT', *options]
        self.pair(words, words + ['-s', at], says=r'Gb/sec')

    def test_blocking(self):
        self.run_pair('-T', 'b', '-T', 'v', '-S', '1000', '-C', '100', '-I', '10')

    def test_not_blocking(self):
        self.run_pair('-T', 'n', '-T', 'v', '-S', '1000', '-C', '100', '-I', '10')

    def test_polling(self):
        self.run_pair('-T', 'a', '-T', 'v', '-S', '1000', '-C', '100', '-I', '10')

    def test_polling_and_blocking(self):
        self.run_pair('-T', 'a', '-T', 'b', '-T', 'v', '-S', '1000', '-C', '100', '-I', '10')

    def test_long_transfers(self):
        self.run_pair('-T', 'b', '-T', 'v', '-S', '4194304', '-C', '5', '-I', '2')

    def test_small_buffers(self):
        self.run_pair('-T', 'b', '-T', 'v', '-S', '100000', '-B', '8192', '-C', '5', '-I', '2')

    def test_ipv6(self):
        words = ['rstream', '-p', 'PORT', '-T', 'b', '-T', 'v', '-C', '10']
        self.pair(words + ['-b', '::1'], words + ['-s', '::1'])

    def test_resolved_by_rdma_cm(self):
        self.run_pair('-T', 'b', '-T', 'r', '-C', '10')

    def test_keepalive(self):
        self.run_pair('-T', 'b', '-k', '5', '-C', '10')

    def test_usual_sizes_blocking(self):
        self.run_pair('-T', 'b')


class Riostream(shared.Pairs):
    def run_pair(self, *options):
        words = ['riostream', '-p', 'PORT', *options]
        self.pair(words, words + ['-s', '127.0.0.1'], says=r'Gb/sec')

    def test_blocking(self):
        self.run_pair('-T', 'b', '-T', 'v', '-S', '1000', '-C', '1', '-I', '10')

    def test_not_blocking(self):
        self.run_pair('-T', 'n', '-S', '1000', '-C', '10', '-I', '10')

    def test_polling(self):
        self.run_pair('-T', 'a', '-S', '1000', '-C', '10', '-I', '10')


class Rcopy(shared.Pairs):
    def copy(self, size):
        if not shutil.which('rcopy'):
            self.skipTest('rcopy is not installed')
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, 'source'), os.path.join(folder, 'target')
            with open(source, 'wb') as file:
                file.write(os.urandom(size))
            port = shared.free_port()
            server = shared.Program(['rcopy', '-p', port])  # never ends
            try:
                server.wait_for_port(port)
                for _ in range(2):
                    client = shared.Program(['rcopy', source, '127.0.0.1:' + target, '-p', port])
                    try:
                        self.assertEqual(client.wait(), 0, client.text() + server.text())
                    finally:
                        client.close()
                    self.assertTrue(filecmp.cmp(source, target, shallow=False))
                    os.unlink(target)
            finally:
                server.close()

    def test_short(self):
        self.copy(1)

    def test_long(self):
        self.copy(20 << 20)


if __name__ == '__main__':
    shared.main()
