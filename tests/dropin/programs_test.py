#!/usr/bin/env python3
"""What the tests of programs rest on: tests/dropin/programs.py."""
import sys
import time
import unittest

sys.dont_write_bytecode = True
from programs import Program  # noqa: E402

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


if __name__ == '__main__':
    unittest.main()
