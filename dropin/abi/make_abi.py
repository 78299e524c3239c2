#!/usr/bin/env python3
"""make_abi.py OUT: what the replacements of libibverbs.so.1 and librdmacm.so.1 need to have the ABI of the committed lists.

  ibverbs.map           version script of libibverbs.so.1; what rdma_cm is made of is there as IWARP_PRIVATE
  ibverbs_stubs.cc      an answer for each of its symbols, weak: a definition of that name takes its place
  rdmacm_stubs.cc       likewise "iwarp_NAME" for each symbol of librdmacm.so.1; part of libibverbs.so.1 as well
  rdmacm.map            version script of librdmacm.so.1
  rdmacm_forwarders.cc  each symbol of librdmacm.so.1: a jump to iwarp_NAME

The lists are beside this file; the head of ibverbs.symbols says what their columns mean.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PRIVATE = 'IWARP_PRIVATE'

ANSWERS = {  # of a stub: what it returns, and its body
    'int': ('int', 'return EOPNOTSUPP;'),
    'fail': ('long', 'errno = EOPNOTSUPP; return -1;'),
    'pointer': ('void*', 'errno = EOPNOTSUPP; return nullptr;'),
    'zero': ('long', 'return 0;'),
    'void': ('void', ''),
}


def read(name):
    """[(name, version, kind, hidden)]."""
    found = []
    with open(os.path.join(HERE, name + '.symbols'), encoding='utf-8') as text:
        for line in text:
            words = line.split('#')[0].split()
            if words:
                found.append((words[0], words[1], words[2], words[3:] == ['hidden']))
    return found


def version_script(symbols, private=()):
    """Nodes in the order of their numbers, each with the one before it as its parent."""
    def order(version):
        return ['PRIVATE' in version] + [int(n) for n in re.findall(r'\d+', version)]

    nodes = {}
    for name, version, _, hidden in symbols:
        nodes.setdefault(version, [])
        if not hidden:
            nodes[version].append(name)
    order_of_nodes = sorted(nodes, key=order)
    text, before = '', ''
    for version in order_of_nodes:
        names = ''.join(f'    {name};\n' for name in nodes[version])
        # In a node with hidden symbols it would hide these as well: so in the last one.
        rest = '  local:\n    *;\n' if version == order_of_nodes[-1] else ''
        text += version + ' {\n' + (f'  global:\n{names}' if names else '') + rest + '}' + (' ' + before if before else '') + ';\n'
        before = version
    if private:
        text += PRIVATE + ' {\n  global:\n' + ''.join(f'    {name};\n' for name in private) + '};\n'
    return text


HEAD = '// Made by dropin/abi/make_abi.py.\n#include <cerrno>\n\nextern "C" {\n'


def stubs(symbols, prefix=''):
    text = HEAD
    for name, version, kind, hidden in symbols:
        if kind == 'data':
            text += f'extern __attribute__((weak)) bool {name};\nbool {name} = false;\n'
            continue
        returns, body = ANSWERS[kind]
        if hidden:
            own = f'old_{name}'
            text += f'__attribute__((used)) {returns} {own}() {{ {body} }}\n'
            text += f'asm(".symver {own}, {name}@{version}");\n'
        else:
            text += f'__attribute__((weak)) {returns} {prefix}{name}() {{ {body} }}\n'
    return text + '}\n'


def forwarders(symbols):
    text = '''// Made by dropin/abi/make_abi.py.
#if defined(__x86_64__)
#define FORWARD(name) \\
  asm(".text\\n.p2align 4\\n.globl " #name "\\n.type " #name ", @function\\n" #name ":\\nendbr64\\njmp iwarp_" #name "@PLT\\n" \\
      ".size " #name ", .-" #name "\\n")
#elif defined(__aarch64__)
#define FORWARD(name) \\
  asm(".text\\n.p2align 4\\n.globl " #name "\\n.type " #name ", %function\\n" #name ":\\nb iwarp_" #name "\\n" \\
      ".size " #name ", .-" #name "\\n")
#else
#error "a jump to iwarp_NAME is missing for this processor"
#endif

'''
    return text + ''.join(f'FORWARD({name});\n' for name, _, _, _ in symbols)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = sys.argv[1]
    ibverbs, rdmacm = read('ibverbs'), read('rdmacm')
    for name, text in (
            ('ibverbs.map', version_script(ibverbs, ['iwarp_' + s[0] for s in rdmacm])),
            ('ibverbs_stubs.cc', stubs(ibverbs)),
            ('rdmacm_stubs.cc', stubs(rdmacm, 'iwarp_')),
            ('rdmacm.map', version_script(rdmacm)),
            ('rdmacm_forwarders.cc', forwarders(rdmacm))):
        with open(os.path.join(out, name), 'w', encoding='utf-8') as file:
            file.write(text)


if __name__ == '__main__':
    main()
