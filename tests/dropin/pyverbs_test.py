#!/usr/bin/env python3
"""Runs modules of rdma-core's own Python tests (pyverbs) over the drop-in libraries, and compares with the list of what they are expected to say.

The tests are not in this tree. They come with rdma-core's sources, of the version of python3-pyverbs (Debian 12: 44.0), and with that package itself:
/usr/share/doc/rdma-core/tests, where documentation is installed. A test passes, is skipped, fails or ends with an error; the list
(tests/dropin/pyverbs.tsv) has which for each, and why it fails: "ok/error" where both may be. A module that crashes or hangs is never as expected.
"""
import argparse
import glob
import gzip
import importlib.machinery
import ipaddress
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from programs import Program  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, 'pyverbs.tsv')
ROOT = os.path.dirname(os.path.dirname(HERE))
PYTHON = '/usr/bin/python3'  # pyverbs is of Debian's
DEBIAN = '/usr/share/doc/rdma-core/tests'
LIMIT = 100 * float(os.environ.get('IWARP_PATIENCE', 1))  # seconds for a module; scripts/verbs-matrix --patience
SKIPPED = 77

EPILOG = """\
examples:
  tests/dropin/pyverbs_test.py --tests /tmp/rdma-core-44.0/tests                  all modules of the list
  tests/dropin/pyverbs_test.py --tests DIR --present roce cq cq_events --repeat 20
  tests/dropin/pyverbs_test.py --tests DIR --write                                write the list anew; its reasons of failures are kept

Exit status: 0 all as the list has it, 1 not, 2 wrong usage, 77 the tests or python3-pyverbs are not there.
"""


class Told(unittest.TestResult):
    """A line for each test, as soon as it is known: an end in the middle of one shows."""

    def tell(self, test, outcome, why=''):
        words = ' '.join(str(why).split()).replace('\t', ' ')
        print(f'@{test.id().removeprefix("tests.")}\t{outcome}\t{words[:160]}', flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.tell(test, 'began')

    def addSuccess(self, test):
        self.tell(test, 'ok')

    def addSkip(self, test, reason):
        self.tell(test, 'skip', reason)

    def addFailure(self, test, err):
        self.tell(test, 'fail', err[1])

    def addError(self, test, err):
        self.tell(test, 'error', err[1])

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.tell(test, 'fail', err[1])


def name_address():
    """rdma-core's tests look in sysfs for the network interface of the device, and for that one's address. This device has no such
    directory, but its GID is its address."""
    from pyverbs.device import Context
    from tests.base import RDMATestCase

    def get_ip_mac(self, dev, port, idx):
        gid = ipaddress.IPv6Address(Context(name=dev).query_gid(port, idx).gid)
        self.args.append([dev, port, idx, str(gid.ipv4_mapped or gid), None])
    RDMATestCase._get_ip_mac = get_ip_mac


def inner(tests, module):
    """Within iwarp run: as rdma-core's run_tests.py, but for the result."""
    sys.path.insert(0, tests)
    importlib.machinery.SourceFileLoader('tests', os.path.join(tests, '__init__.py')).load_module()
    from args_parser import parser
    sys.argv[1:] = ['--dev', 'iwarp0', '--port', '1', '--gid', '0']
    parser.parse_args()
    if module == 'rdmacm':
        name_address()
    unittest.defaultTestLoader.loadTestsFromName('tests.test_' + module).run(Told())


def outcomes(build, tests, present, module):
    """{test: (outcome, why)}; a test that ends the process: 'crash', one that does not end: 'hangs'."""
    iwarp = os.path.join(build, 'bin', 'iwarp')
    command = [iwarp, 'run', '--quiet', '--present', present, '--', PYTHON, os.path.abspath(__file__), '--inner', tests, module]
    with Program(command) as program:
        code = program.wait(LIMIT)
        program.stop()
        text = program.text(None)
    found, under_way = {}, None
    for line in text.splitlines():
        if not line.startswith('@') or line.count('\t') != 2:
            continue
        name, outcome, why = line[1:].split('\t')
        if outcome == 'began':
            under_way = name
            found.setdefault(name, ('crash', ''))
        elif found.get(name, ('crash', ''))[0] in ('crash', 'ok'):
            # The first fault of a test is what it is known by.
            found[name] = (outcome, why)
    if code == 'hangs' and under_way and found[under_way][0] == 'crash':
        found[under_way] = ('hangs', '')
    if not found or code not in (0, 'hangs') and all(outcome != 'crash' for outcome, _ in found.values()):
        found['test_' + module] = ('crash', f'exit status {code}: {text[-300:]}')
    return found


def read_list():
    """{(present, test): (outcome, why)}"""
    if not os.path.exists(LIST):
        return {}
    with open(LIST, encoding='utf-8') as lines:
        rows = [line.rstrip('\n').split('\t') for line in lines if not line.startswith('#')]
    return {(present, test): (outcome, why) for present, test, outcome, why in rows}


def write_list(seen):
    before = read_list()
    kept = dict(before)
    kept.update(seen)
    with open(LIST, 'w', encoding='utf-8') as out:
        out.write('# What the tests of pyverbs 44.0 are expected to say, presented as, and why: tests/dropin/pyverbs_test.py.\n')
        for (present, test), (outcome, why) in sorted(kept.items()):
            reason = before.get((present, test), ('', ''))
            known = outcome in reason[0].split('/')
            out.write(f'{present}\t{test}\t{reason[0] if known else outcome}\t{reason[1] if known else why}\n')


def sources(given, directory):
    """The folder of the tests, unpacked where they are packed; None: there is none."""
    found = given or os.environ.get('IWARP_PYVERBS') or DEBIAN
    if not glob.glob(os.path.join(found, '__init__.py*')):
        return None
    if not glob.glob(os.path.join(found, '*.gz')):
        return os.path.abspath(found)
    copy = os.path.join(directory, 'tests')
    os.mkdir(copy)
    for path in glob.glob(os.path.join(found, '*')):
        name = os.path.join(copy, os.path.basename(path).removesuffix('.gz'))
        with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as packed, open(name, 'wb') as out:
            shutil.copyfileobj(packed, out)
    return copy


def has_pyverbs():
    return subprocess.run([PYTHON, '-c', 'import pyverbs.device'], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def differences(expected, seen):
    """Lines that say what is not as expected."""
    for key in sorted(expected.keys() | seen.keys()):
        want, got = expected.get(key, ('not in the list', ''))[0], seen.get(key, ('not run', ''))
        if got[0] not in want.split('/'):
            yield f'{key[0]} {key[1]}: {got[0]} {got[1]}; expected: {want}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('modules', nargs='*', metavar='MODULE', help='as cq or qp; default: all of the list')
    parser.add_argument('--build', default=os.path.join(ROOT, 'build', 'release'), metavar='DIR', help='the build (default: build/release)')
    parser.add_argument('--tests', metavar='DIR', help=f"rdma-core's folder of tests (default: IWARP_PYVERBS, {DEBIAN})")
    parser.add_argument('--present', choices=('iwarp', 'roce'), help='default: both')
    parser.add_argument('--repeat', type=int, default=1, metavar='N', help='runs of each module (default: 1)')
    parser.add_argument('--write', action='store_true', help='write what is seen into the list, instead of comparing')
    options = parser.parse_args()
    listed = read_list()
    with tempfile.TemporaryDirectory() as directory:
        tests = sources(options.tests, directory)
        if not tests or not has_pyverbs():
            print('rdma-core\'s tests are not there: --tests DIR' if not tests else 'python3-pyverbs is not installed')
            return SKIPPED
        different = total = 0
        for present in [options.present] if options.present else ('iwarp', 'roce'):
            modules = options.modules or list(dict.fromkeys(test.split('.')[0].removeprefix('test_') for where, test in listed if where == present))
            for module in (module.removeprefix('test_') for module in modules):
                expected = {key: value for key, value in listed.items() if key[0] == present and key[1].split('.')[0] == 'test_' + module}
                for _ in range(options.repeat):
                    seen = {(present, test): value for test, value in outcomes(os.path.abspath(options.build), tests, present, module).items()}
                    total += len(seen)
                    if options.write:
                        write_list(seen)
                        continue
                    for line in differences(expected, seen):
                        different += 1
                        print(line)
    print(f'{total} tests, {different} not as expected')
    return 1 if different or not total else 0


if __name__ == '__main__':
    if sys.argv[1:2] == ['--inner']:
        inner(*sys.argv[2:4])
    else:
        try:
            sys.exit(main())
        except KeyboardInterrupt:
            sys.exit(130)
