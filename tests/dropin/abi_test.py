#!/usr/bin/env python3
"""abi_test.py LIBRARIES: the drop-in libraries export what dropin/abi/*.symbols say, name and version, and nothing else but what is theirs;
so do Debian's libraries where they are installed; and Debian's programs load with the drop-in libraries, all symbols bound."""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEBIAN = '/usr/lib/x86_64-linux-gnu'
NEEDED = r'(lib(c|m)|ld-linux[-\w]*)\.so\.|libibverbs\.so\.1$'  # what each Debian has, and one of the two the other
PROGRAMS = ('rping', 'ucmatose', 'ib_write_bw', 'ib_send_lat', 'ibv_devinfo', 'ibv_rc_pingpong', 'qperf')


def wanted(name):
    found = set()
    with open(os.path.join(ROOT, 'dropin', 'abi', name + '.symbols'), encoding='utf-8') as text:
        for line in text:
            words = line.split('#')[0].split()
            if words:
                found.add(words[0] + ('@' if words[3:] else '@@') + words[1])
    return found


def exported(library):
    lines = subprocess.run(['nm', '-D', '--with-symbol-versions', library], check=True, capture_output=True, text=True).stdout.splitlines()
    return {words[2] for words in map(str.split, lines) if len(words) == 3 and words[1] not in 'AUw'}


def main():
    libraries = sys.argv[1]
    problems, loaded = [], []
    for name in ('ibverbs', 'rdmacm'):
        want = wanted(name)
        have = exported(f'{libraries}/lib{name}.so.1')
        problems += [f'lib{name}.so.1 lacks {symbol}' for symbol in sorted(want - have)]
        more = {s for s in have - want if not re.fullmatch(r'iwarp_r\w+@@IWARP_PRIVATE', s)}
        problems += [f'lib{name}.so.1 exports {symbol} as well' for symbol in sorted(more)]
        debian = f'{DEBIAN}/lib{name}.so.1'
        if os.path.exists(debian) and '.so.1.' in os.path.realpath(debian) and os.path.realpath(debian).endswith('.44.0'):
            theirs = exported(debian)
            problems += [f'{name}.symbols lacks {symbol}' for symbol in sorted(theirs - want)]
            problems += [f'{name}.symbols has {symbol}, which Debian\'s library has not' for symbol in sorted(want - theirs)]
            loaded.append(debian)
    needed = subprocess.run(['ldd', f'{libraries}/libibverbs.so.1'], capture_output=True, text=True, check=True).stdout
    problems += [f'libibverbs.so.1 needs {library}' for library in ('libstdc++', 'libgcc_s', 'libcrypto', 'libisal') if library in needed]
    for name in ('ibverbs', 'rdmacm'):
        flags = subprocess.run(['readelf', '-d', f'{libraries}/lib{name}.so.1'], capture_output=True, text=True, check=True).stdout
        needs = set(re.findall(r'\(NEEDED\).*\[(.*)\]', flags))
        problems += [f'lib{name}.so.1 needs {library}' for library in sorted(needs) if not re.match(NEEDED, library)]
        if 'NODELETE' not in flags:
            problems.append(f'lib{name}.so.1 may be unloaded, with the engine\'s thread in it')
    for program in PROGRAMS:
        path = shutil.which(program)
        if path is None:
            continue
        told = subprocess.run(['ldd', '-r', path], capture_output=True, text=True, check=False,
                              env={**os.environ, 'LD_LIBRARY_PATH': libraries, 'LD_BIND_NOW': '1'})
        text = told.stdout + told.stderr
        problems += [f'{program}: {line.strip()}' for line in text.splitlines() if 'undefined' in line or 'not found' in line]
        if f'{libraries}/libibverbs.so.1' not in text:
            problems.append(f'{program} does not load {libraries}/libibverbs.so.1')
        loaded.append(program)
    if problems:
        sys.exit('\n'.join(problems))
    print('compared with, and loaded:', ', '.join(loaded) or 'nothing: install libibverbs1, librdmacm1, perftest, rdmacm-utils, ibverbs-utils')


if __name__ == '__main__':
    main()
