#!/usr/bin/env python3
"""What the tests of programs rest on: tests/dropin/programs.py."""
import os
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from programs import Program, is_rping  # noqa: E402

LINES = 2000


class ProgramTest(unittest.TestCase):
    def test_reading_the_output_meanwhile_loses_none_of_it(self):
        with Program(['bash', '-c', f'for ((i = 0; i < {LINES}; ++i)); do echo "line $i"; done']) as program:
            while program.runs():
                program.text()
            self.assertEqual(program.wait(60), 0)
            self.assertEqual(program.text(None).splitlines(), [f'line {i}' for i in range(LINES)])

    def test_its_end_is_that_of_all_that_it_has_started(self):
        with Program(['bash', '-c', 'sleep 1000 & echo $!; wait']) as program:
            until = time.monotonic() + 20
            while not program.text().endswith('\n') and time.monotonic() < until:
                time.sleep(0.01)
            child = int(program.text())
        until = time.monotonic() + 20
        while self.runs(child) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertFalse(self.runs(child))

    @staticmethod
    def runs(process):
        try:
            with open(f'/proc/{process}/stat', encoding='ascii') as stat:
                return stat.read().rsplit(') ', 1)[1][0] != 'Z'
        except FileNotFoundError:
            return False

    def test_a_program_that_does_not_end_hangs(self):
        with Program(['sleep', '1000']) as program:
            self.assertEqual(program.wait(0.05), 'hangs')


    def test_rping_that_gave_up_is_known_by_what_it_says(self):
        with tempfile.TemporaryDirectory() as directory:
            rping = os.path.join(directory, 'rping')
            with open(rping, 'w', encoding='ascii') as script:
                script.write('#!/bin/sh\necho "$1"\n')
            os.chmod(rping, 0o755)
            for says, code in {'wait for RDMA_WRITE_ADV state 10': 'gave up', 'data mismatch!': 'gave up', 'wait for RDMA_READ_ADV state 10': 0}.items():
                with Program([rping, says]) as program:
                    self.assertEqual(program.wait(20), code, says)

    def test_our_own_rping_is_another(self):
        self.assertTrue(is_rping(['/build/bin/iwarp', 'run', '--', 'rping', '-c']))
        self.assertFalse(is_rping(['/build/bin/iwarp', 'rping', '-c']))
        self.assertFalse(is_rping(['ucmatose']))


if __name__ == '__main__':
    unittest.main()
