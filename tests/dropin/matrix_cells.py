"""The cells of scripts/verbs-matrix: one way to run one program each."""
import os
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
MANY = 1000
FIGURES = r'(?s)#bytes.*\n\s*\d+ +\d+ +[\d.]+'  # what perftest has measured


@dataclass(frozen=True)
class Cell:
    """PORT in the words is a free port, PROGRAMS the folder of the build's programs, TESTS that of this file, BUILD the build, FABTESTS
    that of the programs of fabtests, ADDRESS the address of the device."""

    name: str
    client: list
    server: list = None
    options: list = field(default_factory=list)         # of iwarp run
    environment: dict = field(default_factory=dict)
    needs: list = field(default_factory=list)           # programs besides the first words
    says: str = None                                    # found in the client's output
    ends: tuple = (0,)                                  # exit status, of both ends
    limit: float = 60                                   # seconds
    most: int = MANY                                    # runs, whatever is asked for
    clients: int = 1                                    # at once, each a little after the one before
    server_stays: bool = False                          # it has to run still when the client has ended; it is ended then
    in_short: bool = False                              # of the representative part
    note: str = ''                                      # for the table: what of it can run

    def over_iwarp(self, words):
        return not words[0].startswith(('PROGRAMS/iwarp', 'TESTS'))


def both_crcs():
    return (('on', ['--crc', 'on']), ('off', ['--crc', 'off']))


def rdmacm_utils():
    ping = ['-C', '100', '-V', '-p', 'PORT']
    for name, options in {'': [], '-long': ['-S', '65535', '-C', '10000'], '-queue-pairs': ['-q']}.items():
        yield Cell('rping' + name, ['rping', '-c', '-a', '127.0.0.1', *ping, *options], ['rping', '-s', *ping, *options])
    # Its server forgets a request when the next one comes before it has looked at it: one a little after the other.
    many = ['-V', '-S', '4000', '-C', '1000', '-p', 'PORT']
    yield Cell('rping-20-clients', ['rping', '-c', '-a', '127.0.0.1', *many], ['rping', '-s', '-P', *many], clients=20, server_stays=True)
    yield Cell('rping-ipv6', ['rping', '-c', '-a', '::1', *ping], ['rping', '-s', '-a', '::1', *ping])
    yield from rping_and_iwarp(many)
    for name, options in {'': ['-c', '10', '-C', '100'], '-many': ['-c', '100', '-C', '1000'], '-migrate': ['-c', '10', '-C', '100', '-m']}.items():
        yield Cell('ucmatose' + name, ['ucmatose', '-s', '127.0.0.1', '-p', 'PORT', *options], ['ucmatose', '-p', 'PORT', *options])
    words = ['-b', '127.0.0.1', '-f', 'ip', '-p', 'PORT', '-c', '10', '-C', '100', '-S', '65536', '-t', '8', '-a', '14']
    yield Cell('ucmatose-options', ['ucmatose', '-s', '127.0.0.1', *words], ['ucmatose', *words])
    words = ['-p', 'PORT', '-c', '10', '-C', '100']
    yield Cell('ucmatose-ipv6', ['ucmatose', '-s', '::1', *words], ['ucmatose', '-b', '::1', *words])
    yield Cell('rdma_client', ['rdma_client', '-s', '127.0.0.1', '-p', 'PORT'], ['rdma_server', '-p', 'PORT'])
    yield Cell('rdma_xclient', ['rdma_xclient', '-s', '127.0.0.1', '-p', 'PORT'], ['rdma_xserver', '-p', 'PORT'])
    yield Cell('cmtime', ['cmtime', '-s', '127.0.0.1', '-p', 'PORT', '-c', '1000'], ['cmtime', '-p', 'PORT', '-c', '1000'], server_stays=True)


def rping_and_iwarp(many):
    """rping at one end, `iwarp rping` at the other, which verifies likewise."""
    ways = {'': ['-C', '100'], '-long': ['-C', '10000', '-S', '65535'], '-queue-pairs': ['-C', '100', '-q'], '-ipv6': ['-C', '100']}
    for name, options in ways.items():
        address = '::1' if name == '-ipv6' else '127.0.0.1'
        at = ['-a', address] if name == '-ipv6' else []
        ping = [*options, '-V', '-p', 'PORT']
        yield Cell('rping-to-iwarp' + name, ['rping', '-c', '-a', address, *ping], ['PROGRAMS/iwarp', 'rping', '-s', '-V', '-p', 'PORT', *at])
        yield Cell('iwarp-to-rping' + name, ['PROGRAMS/iwarp', 'rping', '-c', '-a', address, *ping], ['rping', '-s', *ping, *at])
    client = ['rping', '-c', '-a', '127.0.0.1', *many]
    yield Cell('rping-to-iwarp-20-clients', client, ['PROGRAMS/iwarp', 'rping', '-s', '-P', '-V', '-p', 'PORT'], clients=20, server_stays=True)
    yield Cell('iwarp-to-rping-20-clients', ['PROGRAMS/iwarp', *client], ['rping', '-s', '-P', *many], clients=20, server_stays=True)


def utils():
    """ibverbs-utils that need no peer."""
    for name, options in {'': [], 'roce-': ROCE}.items():
        yield Cell(name + 'devinfo', ['ibv_devinfo', '-v'], None, options, says=r'(?s)hca_id:\s*iwarp0.*PORT_ACTIVE')


def out_of_scope():
    """Programs of what there is not: datagrams, multicast, UC, XRC. They end at once, with an error."""
    for name, words, says in (('udaddy', ['udaddy'], 'Operation not supported'), ('udaddy-client', ['udaddy', '-s', '127.0.0.1'], None),
                              ('mckey', ['mckey', '-m', '224.0.0.5', '-b', '127.0.0.1'], None), ('udpong', ['udpong'], 'Protocol not supported')):
        yield Cell('refused-' + name, words, says=says, ends=(1, 255), limit=10, note='there are no datagrams')
    for presented, options in (('', []), ('roce-', ROCE)):
        for name, says in (('uc', 'create QP'), ('ud', 'create QP'), ('xsrq', 'Open the XRC Domain 95')):
            yield Cell(f'refused-{presented}{name}_pingpong', [f'ibv_{name}_pingpong'], None, options, says=says, ends=(1,), limit=10, note='there is no such queue pair')


def rsockets():
    ways = {'blocking': ['-T', 'b'], 'nonblocking': ['-T', 'n'], 'polling': ['-T', 'a'], 'polling-blocking': ['-T', 'a', '-T', 'b']}
    for name, options in ways.items():
        words = ['rstream', '-p', 'PORT', '-T', 'v', '-S', '10000', '-C', '100', '-I', '10', *options]
        yield Cell('rstream-' + name, [*words, '-s', '127.0.0.1'], words, says='Gb/sec', in_short=name == 'blocking')
        words = ['riostream', '-p', 'PORT', '-S', '10000', '-C', '10', '-I', '10', *options]
        yield Cell('riostream-' + name, [*words, '-s', '127.0.0.1'], words, says='Gb/sec')
    words = ['rstream', '-p', 'PORT', '-T', 'v', '-T', 'b', '-S', '4194304', '-C', '5', '-I', '2']
    yield Cell('rstream-long', [*words, '-s', '127.0.0.1'], words, says='Gb/sec')
    words = ['rstream', '-p', 'PORT', '-T', 'v', '-T', 'b', '-S', '100000', '-B', '8192', '-C', '5', '-I', '4']
    yield Cell('rstream-small-buffers', [*words, '-s', '127.0.0.1'], words, says='Gb/sec')
    words = ['rstream', '-p', 'PORT', '-T', 'v', '-T', 'b', '-S', 'all']
    yield Cell('rstream-all', [*words, '-s', '127.0.0.1'], words, says=r'(?s)\n64_lat .*\n64_bw .*\n6m_bw ', limit=600, most=5)
    words = ['rstream', '-p', 'PORT', '-T', 'v', '-T', 'b', '-C', '20']
    yield Cell('rstream-ipv6', [*words, '-s', '::1'], [*words, '-b', '::1'], says='Gb/sec')
    # The script compares the files; its two tests copy 1 octet and 20 MiB, twice each.
    yield Cell('rcopy', ['TESTS/rsocket_programs_test.py', '--build', 'BUILD', '-v', 'Rcopy'], needs=['rcopy'], says=r'Ran 2 tests[^$]*\nOK\n')


WAYS = {'': ['-n', '1000'], '-8-queue-pairs': ['-n', '1000', '-q', '8'], '-both': ['-n', '1000', '-b'], '-lists': ['-n', '1024', '-l', '64', '-t', '128', '-s', '64'],
        '-inline': ['-n', '1000', '-I', '64', '-s', '64'], '-srq': ['-n', '1000', '--use-srq'], '-events': ['-n', '1000', '-e'], '-all': ['-n', '100', '-a'],
        '-seconds': ['-D', '2']}


def ways_of(verb, what):
    """(name, options) of what perftest can do with this operation."""
    for way, options in WAYS.items():
        if not (way == '-inline' and verb == 'read' or way in ('-srq', '-events') and verb != 'send' or
                what == 'lat' and way in ('-8-queue-pairs', '-both', '-lists')):
            yield way, options


def perftest():
    for crc, told in both_crcs():
        for verb in ('write', 'read', 'send'):
            for what in ('bw', 'lat'):
                for way, options in ways_of(verb, what):
                    # Where its window of credits closes it sleeps until a completion that it has not asked for: docs/VERBS.md.
                    open_window = ['-r', '1100'] if (verb, what, way) == ('send', 'bw', '-events') else []
                    words = [f'ib_{verb}_{what}', '-R', '-F', '-p', 'PORT', *options, *open_window]
                    yield Cell(f'{verb}_{what}{way}-crc-{crc}', [*words, '127.0.0.1'], words, told, says=FIGURES, most=5 if way == '-all' else MANY)


def atomics():
    for what in ('bw', 'lat'):
        for kind in ('FETCH_AND_ADD', 'CMP_AND_SWAP'):
            words = [f'ib_atomic_{what}', '-R', '-F', '-p', 'PORT', '-A', kind, '-n', '1000']
            yield Cell(f'atomic_{what}-{kind.lower()}', [*words, '127.0.0.1'], words, ['--rfc7306'], says=FIGURES)


ROCE = ['--present', 'roce', '--address', '127.0.0.1']
ROCE_IPV6 = ['--present', 'roce', '--address', '::1']


def roce_pingpong():
    """ibverbs-utils, which connect by ibv_modify_qp()."""
    ways = {'rc_pingpong': ['ibv_rc_pingpong'], 'rc_pingpong-events': ['ibv_rc_pingpong', '-e'], 'rc_pingpong-new-post': ['ibv_rc_pingpong', '-N'],
            'rc_pingpong-1m': ['ibv_rc_pingpong', '-c', '-s', '1048576', '-n', '200'], 'srq_pingpong': ['ibv_srq_pingpong'],
            'srq_pingpong-events': ['ibv_srq_pingpong', '-e', '-q', '4'], 'srq_pingpong-16': ['ibv_srq_pingpong', '-q', '16'], 'srq_pingpong-1m': ['ibv_srq_pingpong', '-s', '1048576', '-n', '200']}
    for crc, told in both_crcs():
        for name, words in ways.items():
            server = [*words, '-g', '0', '-p', 'PORT']
            yield Cell(f'roce-{name}-crc-{crc}', [*server, '127.0.0.1'], server, [*ROCE, *told], says='iters in', in_short=name == 'rc_pingpong-1m' and crc == 'on')
    server = ['ibv_rc_pingpong', '-g', '0', '-p', 'PORT']
    yield Cell('roce-rc_pingpong-ipv6', [*server, '127.0.0.1'], server, ROCE_IPV6, says='iters in')


def roce_perftest():
    """Without -R. With -D 2 only where it costs least."""
    for crc, told in both_crcs():
        for verb in ('write', 'read', 'send'):
            for what in ('bw', 'lat'):
                for way, options in ways_of(verb, what):
                    if way == '-seconds' and (crc, what) != ('on', 'bw') or way == '-all' and crc == 'off':
                        continue
                    words = [f'ib_{verb}_{what}', '-x', '0', '-F', '-p', 'PORT', *options]
                    yield Cell(f'roce-{verb}_{what}{way}-crc-{crc}', [*words, '127.0.0.1'], words, [*ROCE, *told], says=FIGURES,
                               most=5 if way == '-all' else MANY)
        for what in ('bw', 'lat'):
            for kind in ('FETCH_AND_ADD', 'CMP_AND_SWAP'):
                words = [f'ib_atomic_{what}', '-x', '0', '-F', '-p', 'PORT', '-A', kind, '-n', '1000']
                yield Cell(f'roce-atomic_{what}-{kind.lower()}-crc-{crc}', [*words, '127.0.0.1'], words, [*ROCE, *told], says=FIGURES)
    # The verbs' connection alone is of IPv6: perftest exchanges its keys over IPv4.
    for verb in ('write', 'read', 'send'):
        words = [f'ib_{verb}_bw', '-x', '0', '--ipv6', '-F', '-p', 'PORT', '-n', '1000']
        yield Cell(f'roce-{verb}_bw-ipv6', [*words, '127.0.0.1'], words, ROCE_IPV6, says=FIGURES)


def roce_rdma_cm():
    ping = ['-C', '100', '-V', '-p', 'PORT']
    yield Cell('roce-rping', ['rping', '-c', '-a', '127.0.0.1', *ping], ['rping', '-s', *ping], ROCE)
    yield Cell('roce-ucmatose', ['ucmatose', '-s', '127.0.0.1', '-p', 'PORT', '-c', '10', '-C', '100'], ['ucmatose', '-p', 'PORT', '-c', '10', '-C', '100'], ROCE)
    words = ['ib_send_bw', '-R', '-F', '-p', 'PORT', '-n', '1000']
    yield Cell('roce-send_bw-rdma_cm', [*words, '127.0.0.1'], words, ROCE, says=FIGURES)


def mpi():
    ofi = ['--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'mtl_ofi_provider_include', 'verbs;ofi_rxm', '--mca', 'btl', '^openib',
           '--mca', 'mtl_base_verbose', '1']
    for ranks in (2, 4):
        yield Cell(f'mpi-ofi-{ranks}', ['mpirun', '--allow-run-as-root', '--oversubscribe', '-np', str(ranks), *ofi, 'PROGRAMS/dropin_mpi_program'],
                   needs=['PROGRAMS/dropin_mpi_program'], says=f'(?s)(?=.*mtl:ofi:provider: iwarp0)(?=.*{ranks} ranks: right)', limit=120, in_short=ranks == 2)


def libfabric():
    for name, words in {'msg': ['-p', 'verbs', '-e', 'msg'], 'rdm': ['-p', 'verbs;ofi_rxm', '-e', 'rdm']}.items():
        for size, count in (('64', '1000'), ('65536', '200'), ('all', '20')):
            told = ['fi_pingpong', *words, '-I', count, '-S', size, '-c']
            yield Cell(f'fi_pingpong-{name}-{size}', [*told, '-P', 'PORT', '127.0.0.1'], [*told, '-B', 'PORT'], in_short=size == '65536')
    for name in ('msg', 'rdm'):
        for crc, told in both_crcs():
            words = ['PROGRAMS/dropin_fabric_program', name, 'ADDRESS', 'PORT']
            yield Cell(f'fabric-{name}-crc-{crc}', [*words, 'connect'], words, told, says='right', in_short=crc == 'on')


def rows_of(name):
    """Of a list beside this file, without its comments."""
    with open(os.path.join(HERE, name), encoding='utf-8') as lines:
        return [line.rstrip('\n').split('\t') for line in lines if not line.startswith('#')]


def fabtests():
    """Those of its programs that can pass, where they were built (docs/VERBS.md), by the list of what they are expected to do."""
    for ends, provider, told, expected, _ in rows_of('fabtests.tsv'):
        if expected != 'pass':
            continue
        words = ['FABTESTS/' + told.split()[0], *told.split()[1:], '-p', provider]
        name = f'fabtests-{"rdm" if "rxm" in provider else ends if ends == "alone" else "msg"}-' + '_'.join(told.replace(' ADDRESS', '').split()).replace('_-', '-')
        # Both ends name the address of the device: libfabric takes none of the loopback.
        at = [*words, '-s', 'ADDRESS']
        server = None
        if ends == 'alone':
            client = words
        elif ends == 'oob':
            server, client = [*at, '-b=PORT'], [*at, '-b=PORT', 'ADDRESS']
        else:
            server, client = [*at, '-B', 'PORT'], [*at, '-P', 'PORT', 'ADDRESS']
        yield Cell(name, client, server, ['--rfc7306'])


def ucx():
    """UCT, the lower half of UCX, by ucx_perftest; and UCP, the upper one, which needs TCP to set it up."""
    for test in ('am_lat', 'am_bw', 'put_lat', 'put_bw'):
        for size, layout in (('8', 'short'), ('1024', 'bcopy'), ('4096', 'zcopy')):
            words = ['ucx_perftest', '-d', 'iwarp0:1', '-x', 'rc_verbs', '-t', test, '-n', '1000' if 'lat' in test else '20000', '-w', '100', '-s', size, '-D', layout,
                     '-p', 'PORT']
            yield Cell(f'ucx-{test}-{layout}', [*words, '127.0.0.1'], words, ROCE, in_short=(test, size) == ('am_lat', '8'))
    told = {'UCX_TLS': 'rc_verbs,tcp', 'UCX_SOCKADDR_TLS_PRIORITY': 'tcp'}
    for crc, options in both_crcs():
        yield Cell(f'ucp-crc-{crc}', ['PROGRAMS/dropin_ucp_program', 'PORT', '127.0.0.1'], ['PROGRAMS/dropin_ucp_program', 'PORT'], [*ROCE, *options], told,
                   says=r'(?s)lane\[\d\]: +\d+:rc_verbs/iwarp0:1.*right', in_short=crc == 'on')


def qperf():
    """All of its tests for reliable connections."""
    for way, options in {'': ['--rfc7306'], 'roce-': ROCE}.items():
        for test in ('rc_lat', 'rc_bw', 'rc_bi_bw', 'rc_rdma_read_bw', 'rc_rdma_read_lat', 'rc_rdma_write_lat', 'rc_rdma_write_bw', 'rc_rdma_write_poll_lat',
                     'rc_compare_swap_mr', 'rc_fetch_add_mr', 'ver_rc_compare_swap', 'ver_rc_fetch_add'):
            yield Cell(way + 'qperf-' + test, ['qperf', '-lp', 'PORT', '-cm1', '-t', '1', '127.0.0.1', test], ['qperf', '-lp', 'PORT'], options, server_stays=True,
                       in_short=not way and test in ('rc_rdma_read_bw', 'rc_rdma_write_lat', 'rc_fetch_add_mr'))


def pyverbs_modules():
    """{(present, module): [(test, outcome, why)]} of the list."""
    modules = {}
    for present, test, outcome, why in rows_of('pyverbs.tsv'):
        modules.setdefault((present, test.split('.')[0].removeprefix('test_')), []).append((test, outcome, why))
    return modules


def passes(tests):
    return sum('ok' in outcome.split('/') for _, outcome, _ in tests)


def pyverbs():
    """A module of rdma-core's tests each, where these are (docs/VERBS.md), by the list of what they are expected to say; not those without a
    test that passes."""
    for (present, module), tests in pyverbs_modules().items():
        if passes(tests):
            yield Cell(f'pyverbs-{present}-{module}', ['TESTS/pyverbs_test.py', '--build', 'BUILD', '--present', present, module], limit=120,
                       in_short=(present, module) in (('roce', 'cq_events'), ('roce', 'qpex')),
                       says='[1-9]\\d* tests, 0 not as expected', note=f'{passes(tests)} of its {len(tests)} tests can pass')


def cannot_run():
    """(what, why) of the lists' rows that are no cells."""
    for _, provider, told, expected, why in rows_of('fabtests.tsv'):
        if expected != 'pass':
            yield f'{told} -p {provider}', why
    for (present, module), tests in pyverbs_modules().items():
        if not passes(tests):
            yield f'pyverbs, {present}, test_{module}', '; '.join(dict.fromkeys(why for _, _, why in tests if why))


def all_cells():
    groups = (rdmacm_utils, utils, out_of_scope, rsockets, perftest, atomics, roce_pingpong, roce_perftest, roce_rdma_cm, mpi, libfabric, fabtests, ucx, qperf, pyverbs)
    return [cell for group in groups for cell in group()]
