#!/usr/bin/env python3
"""matrix_test.py: what scripts/verbs-matrix counts as passed, failed and skipped, with programs that need no verbs; and its lists."""
import contextlib
import dataclasses
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import matrix_cells  # noqa: E402
import pyverbs_test  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader('verbs_matrix', os.path.join(os.path.dirname(os.path.dirname(HERE)), 'scripts', 'verbs-matrix'))
SPEC = importlib.util.spec_from_loader(LOADER.name, LOADER)
matrix = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(matrix)

SERVES = ['python3', '-c', 'import socket, sys; s = socket.create_server(("127.0.0.1", int(sys.argv[1]))); s.accept()[0].recv(1); sys.exit(int(sys.argv[2]))', 'PORT']
ASKS = ['python3', '-c', 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close(); print("said so")', 'PORT']


@dataclasses.dataclass(frozen=True)
class Plain(matrix_cells.Cell):
    """A program as it is."""

    def over_iwarp(self, _words):
        return False


class Places(matrix.Places):
    def __init__(self):
        super().__init__('/nowhere', '/nowhere/fabtests')

    def find_address(self):
        self.address = '127.0.0.1'


class Matrix(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.places = Places()
        self.places.find_address()
        self.kept = os.path.join(self.directory, 'results')

    def once(self, *words, **more):
        return matrix.run_once(self.places, Plain('cell', *words, **more), self.directory)

    def all(self, *cells, repeat=2, **more):
        """(exit status, what was printed)"""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = matrix.run_all(self.places, cells, matrix.Results(self.kept, 'this build', cells), repeat, **more)
        return status, said.getvalue()

    def test_both_ends_have_to_end_right(self):
        self.assertIsNone(self.once(ASKS, [*SERVES, '0']))
        self.assertIn("exit status [0, 3]", self.once(ASKS, [*SERVES, '3']))
        self.assertIn('exit status [1]', self.once(['false']))
        self.assertIsNone(self.once(['false'], ends=(1,)))

    def test_the_client_has_to_say_it(self):
        self.assertIsNone(self.once(ASKS, [*SERVES, '0'], says='^said so'))
        self.assertIn('said so', self.once(ASKS, [*SERVES, '0'], says='something else'))

    def test_a_program_that_hangs_fails(self):
        self.assertIn("['hangs']", self.once(['sleep', '60'], limit=0.2))

    def test_a_server_that_stays_has_to_run_still(self):
        stays = ['python3', '-c', 'import socket, sys; s = socket.create_server(("127.0.0.1", int(sys.argv[1])))\nwhile True: s.accept()', 'PORT']
        self.assertIsNone(self.once(ASKS, stays, server_stays=True, clients=3))
        late = [*ASKS[:2], ASKS[2] + '; import time; time.sleep(0.5)', 'PORT']
        self.assertIn('has ended', self.once(late, [*SERVES, '0'], server_stays=True))

    def test_a_server_that_does_not_listen_fails(self):
        self.assertIn('does not listen', self.once(ASKS, ['false']))

    def test_a_failing_run_ends_its_cell_alone(self):
        status, said = self.all(Plain('bad', ['false']), Plain('good', ['true']))
        self.assertEqual(status, 1, said)
        self.assertIn('bad: 0 of 2', said)
        self.assertIn('good: 2 of 2', said)

    def test_what_passed_is_not_run_again_and_what_failed_is(self):
        once = os.path.join(self.directory, 'once')  # passes as long as it is not there
        good = Plain('good', ['sh', '-c', f'test ! -e {once}'])
        self.all(Plain('bad', ['false']), good)
        with open(once, 'w', encoding='ascii'):
            pass
        status, said = self.all(Plain('bad', ['true']), good)
        self.assertEqual(status, 0, said)
        self.assertIn('1 cells had passed before', said)
        self.assertEqual(self.all(good, repeat=3)[0], 1)

    def test_a_cell_with_other_words_is_run_again(self):
        self.all(Plain('cell', ['true']))
        self.assertEqual(self.all(Plain('cell', ['false']))[0], 1)
        self.all(Plain('cell', ['true']))
        self.assertEqual(self.all(Plain('cell', ['true'], says='something'))[0], 1)

    def test_results_with_other_libraries_stay_until_the_cell_is_run_again(self):
        one, other = Plain('one', ['true']), Plain('other', ['true'])
        self.all(one, other)
        later = matrix.Results(self.kept, 'a later build', [one, other])
        self.assertEqual((sorted(later.cells), later.of_this_build(one)), (['one', 'other'], None))
        later.add(one, 2, 2, 1.0, None)
        self.assertEqual([matrix.Results(self.kept, version, [one, other]).of_this_build(one) is not None for version in ('this build', 'a later build')],
                         [False, True])
        self.assertEqual(sorted(matrix.builds(later.cells.values()).values()), ['A', 'B'])
        lines = list(matrix.build_lines(list(later.cells.values())))
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[1], r'^- B: the libraries of .*; 1 cells, run ')

    def test_nothing_but_skipped_is_not_passed(self):
        absent = Plain('absent', ['no-such-program'])
        status, said = self.all(absent)
        self.assertEqual(status, matrix.SKIPPED, said)
        self.assertIn('no-such-program is not installed', said)
        self.assertEqual(self.all(absent, Plain('good', ['true']))[0], 0)
        self.assertEqual(self.all(absent, Plain('good', ['true']), all_must_run=True)[0], 1)

    def test_a_script_may_skip_itself_and_a_program_may_not(self):
        words = ['sh', '-c', 'echo the reason; exit 77']
        status, said = self.all(Plain('script', words))
        self.assertEqual(status, matrix.SKIPPED)
        self.assertIn('script: the reason', said)

        class Over(Plain):
            def over_iwarp(self, _words):
                return True

        self.places.iwarp = os.path.join(self.directory, 'iwarp')
        with open(self.places.iwarp, 'w', encoding='utf-8') as script:
            script.write('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
        os.chmod(self.places.iwarp, 0o755)
        self.assertEqual(self.all(Over('program', words))[0], 1)

    def test_cells_have_names_of_their_own(self):
        names = [cell.name for cell in matrix.all_cells()]
        self.assertEqual(sorted(names), sorted(set(names)))

    def test_all_of_it_is_measured_and_takes_no_longer_than_it_may(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            matrix.list_cells(matrix.all_cells(), 20)
        self.assertNotIn('not measured', said.getvalue().splitlines()[-1])
        self.assertNotIn('more than', said.getvalue().splitlines()[-1])

    def test_cells_are_what_can_pass_and_the_rest_has_its_reason(self):
        self.assertTrue(all(why for _, why in matrix.cannot_run()))
        self.assertNotIn('0 of', ''.join(cell.note for cell in matrix.all_cells()))

    def test_what_tells_the_libraries_is_the_cell_alone(self):
        os.environ['IWARP_CRC'] = 'off'
        self.addCleanup(os.environ.pop, 'IWARP_CRC')
        self.assertNotIn('IWARP_CRC', matrix.plain_environment())


class Pyverbs(unittest.TestCase):
    KEY = ('roce', 'test_cq.CQTest.test_one')

    def test_each_difference_from_the_list_is_told(self):
        expected = {self.KEY: ('ok', '')}
        self.assertEqual(list(pyverbs_test.differences(expected, {self.KEY: ('ok', '')})), [])
        for seen in ({self.KEY: ('skip', 'why')}, {self.KEY: ('crash', '')}, {}, {self.KEY: ('ok', ''), ('roce', 'test_cq.New'): ('ok', '')}):
            self.assertEqual(len(list(pyverbs_test.differences(expected, seen))), 1, seen)
        self.assertEqual(list(pyverbs_test.differences({self.KEY: ('ok/error', '')}, {self.KEY: ('error', '')})), [])


if __name__ == '__main__':
    unittest.main()
