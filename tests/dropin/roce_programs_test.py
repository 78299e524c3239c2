#!/usr/bin/env python3
"""roce_programs_test.py [--build DIR] [--repeat N] [unittest arguments]

Debian's programs that connect by ibv_modify_qp() (ibverbs-utils, perftest without -R), and some of rdma_cm, unmodified, over the drop-in
libraries of a build that present their device as RoCE.
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import verbs_programs as shared  # noqa: E402


class Pingpong(shared.Pairs):
    def run_pair(self, program, *options, at='127.0.0.1'):
        words = [program, '-g', '0', '-p', 'PORT', *options]
        self.pair(words, words + [at])

    def test_rc(self):
        self.run_pair('ibv_rc_pingpong')

    def test_rc_events(self):
        self.run_pair('ibv_rc_pingpong', '-e')

    def test_rc_new_way_to_post(self):
        self.run_pair('ibv_rc_pingpong', '-N')

    def test_rc_checked(self):
        self.run_pair('ibv_rc_pingpong', '-c', '-s', '1048576', '-n', '100')

    def test_srq(self):
        self.run_pair('ibv_srq_pingpong')

    def test_srq_events(self):
        self.run_pair('ibv_srq_pingpong', '-e', '-q', '4')

    def test_without_a_gid(self):
        words = ['ibv_rc_pingpong', '-p', 'PORT']
        self.pair(words, words + ['127.0.0.1'], server_code=1, client_code=1, says='Failed to modify QP to RTR')


class Perftest(shared.PerftestCases, shared.Pairs):
    def run_pair(self, program, *options):
        words = [program, '-x', '0', '-F', '-p', 'PORT', *options]
        self.pair(words, words + ['127.0.0.1'])

    def test_send_with_events(self):
        self.run_pair('ib_send_bw', '-n', '1000', '-e')

    def test_atomics(self):
        self.run_pair('ib_atomic_bw', '-n', '1000')


class RdmaCm(shared.Pairs):
    def test_rping(self):
        options = ['-C', '100', '-V', '-S', '4000', '-p', 'PORT']
        self.pair(['rping', '-s'] + options, ['rping', '-c', '-a', '127.0.0.1'] + options)

    def test_rping_own_queue_pairs(self):
        options = ['-q', '-C', '100', '-V', '-p', 'PORT']
        self.pair(['rping', '-s'] + options, ['rping', '-c', '-a', '127.0.0.1'] + options)

    def test_ucmatose(self):
        options = ['-c', '10', '-C', '100', '-p', 'PORT']
        self.pair(['ucmatose'] + options, ['ucmatose', '-s', '127.0.0.1'] + options)

    def test_perftest(self):
        words = ['ib_send_bw', '-R', '-F', '-n', '1000', '-p', 'PORT']
        self.pair(words, words + ['127.0.0.1'])

    def refused(self, server, client):
        """The client is told that it is rejected; the server goes on listening."""
        for words in (server, client):
            if not shutil.which(words[0]):
                self.skipTest(words[0] + ' is not installed')
        port = str(shared.free_port())
        one = shared.Program([*server, '-p', port])
        try:
            one.wait_for_port(int(port))
            two = shared.Program([*client, '-a', '127.0.0.1', '-C', '1', '-p', port])
            try:
                self.assertNotIn(two.wait(), (0, 'hangs'), two.text())
                self.assertRegex(two.text(), 'REJECTED|reject|refus')
                self.assertIsNone(one.process.poll(), one.text())
                self.assertTrue(shared.listens(int(port)))
            finally:
                two.close()
        finally:
            one.close()

    def test_no_peer_of_iwarp(self):
        self.refused([shared.own(), 'rping', '-s', '-P'], ['rping', '-c'])

    def test_for_no_peer_of_iwarp(self):
        self.refused(['rping', '-s'], [shared.own(), 'rping', '-c'])


class Device(shared.Pairs):
    def test_devinfo(self):
        if not shutil.which('ibv_devinfo'):
            self.skipTest('ibv_devinfo is not installed')
        program = shared.Program(['ibv_devinfo', '-v'])
        try:
            self.assertEqual(program.wait(), 0, program.text())
            for line in (r'transport:\s+InfiniBand \(0\)', r'link_layer:\s+Ethernet', r'GID\[\s*0\]:\s+::ffff:127\.0\.0\.1, RoCE v2'):
                self.assertRegex(program.text(), line)
        finally:
            program.close()

    def test_run_says_so(self):
        done = subprocess.run([shared.own(), 'run', '--present', 'roce', '--', 'env'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env={'PATH': os.environ['PATH']})
        self.assertIn('IWARP_PRESENT=roce\n', done.stdout)
        self.assertIn('presented as RoCE', done.stderr)


if __name__ == '__main__':
    os.environ.update(IWARP_PRESENT='roce', IWARP_ADDRESS='127.0.0.1')
    shared.main()
