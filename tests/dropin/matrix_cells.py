"""The cells of scripts/verbs-matrix: one way to run one program each."""
from dataclasses import dataclass, field

MANY = 1000


@dataclass(frozen=True)
class Cell:
    """PORT in the words is a free port, PROGRAMS the folder of the build's programs."""

    name: str
    client: list
    server: list = None
    options: list = field(default_factory=list)         # of iwarp run
    environment: dict = field(default_factory=dict)
    needs: list = field(default_factory=list)           # programs besides the first words
    says: str = None                                    # found in the client's output
    limit: float = 60                                   # seconds
    most: int = MANY                                    # runs, whatever is asked for
    server_stays: bool = False
    in_short: bool = False                              # of the representative part

    def over_iwarp(self, words):
        return not words[0].startswith('PROGRAMS') and '/bin/iwarp' not in words[0]


def rdmacm_utils():
    ping = ['-C', '100', '-V', '-p', 'PORT']
    for name, options in {'': [], '-long': ['-S', '65535', '-C', '10000'], '-queue-pairs': ['-q']}.items():
        yield Cell('rping' + name, ['rping', '-c', '-a', '127.0.0.1', *ping, *options], ['rping', '-s', *ping, *options])
    yield Cell('rping-ipv6', ['rping', '-c', '-a', '::1', *ping], ['rping', '-s', '-a', '::1', *ping])
    yield Cell('rping-to-iwarp', ['rping', '-c', '-a', '127.0.0.1', *ping], ['PROGRAMS/iwarp', 'rping', '-s', '-V', '-p', 'PORT'])
    yield Cell('iwarp-to-rping', ['PROGRAMS/iwarp', 'rping', '-c', '-a', '127.0.0.1', *ping], ['rping', '-s', *ping])
    for name, options in {'': ['-c', '10', '-C', '100'], '-many': ['-c', '100', '-C', '1000'], '-migrate': ['-c', '10', '-C', '100', '-m']}.items():
        yield Cell('ucmatose' + name, ['ucmatose', '-s', '127.0.0.1', '-p', 'PORT', *options], ['ucmatose', '-p', 'PORT', *options])
    yield Cell('rdma_client', ['rdma_client', '-s', '127.0.0.1', '-p', 'PORT'], ['rdma_server', '-p', 'PORT'])
    yield Cell('rdma_xclient', ['rdma_xclient', '-s', '127.0.0.1', '-p', 'PORT'], ['rdma_xserver', '-p', 'PORT'])
    yield Cell('cmtime', ['cmtime', '-s', '127.0.0.1', '-p', 'PORT', '-c', '1000'], ['cmtime', '-p', 'PORT', '-c', '1000'], server_stays=True)


def rsockets():
    ways = {'blocking': ['-T', 'b'], 'nonblocking': ['-T', 'n'], 'polling': ['-T', 'a'], 'polling-blocking': ['-T', 'a', '-T', 'b']}
    for name, options in ways.items():
        words = ['rstream', '-p', 'PORT', '-T', 'v', '-S', '10000', '-C', '100', '-I', '10', *options]
        yield Cell('rstream-' + name, [*words, '-s', '127.0.0.1'], words, in_short=name == 'blocking')
        words = ['riostream', '-p', 'PORT', '-S', '10000', '-C', '10', '-I', '10', *options]
        yield Cell('riostream-' + name, [*words, '-s', '127.0.0.1'], words)
    words = ['rstream', '-p', 'PORT', '-T', 'v', '-T', 'b', '-S', '4194304', '-C', '5', '-I', '2']
    yield Cell('rstream-long', [*words, '-s', '127.0.0.1'], words)
    words = ['rstream', '-p', 'PORT', '-T', 'v', '-T', 'b', '-S', '100000', '-B', '8192', '-C', '5', '-I', '4']
    yield Cell('rstream-small-buffers', [*words, '-s', '127.0.0.1'], words)
    words = ['rstream', '-p', 'PORT', '-T', 'v', '-T', 'b', '-C', '20']
    yield Cell('rstream-ipv6', [*words, '-s', '::1'], [*words, '-b', '::1'])


def perftest():
    ways = {'': ['-n', '1000'], '-8-queue-pairs': ['-n', '1000', '-q', '8'], '-both': ['-n', '1000', '-b'], '-lists': ['-n', '1024', '-l', '64', '-t', '128', '-s', '64'],
            '-inline': ['-n', '1000', '-I', '64', '-s', '64'], '-srq': ['-n', '1000', '--use-srq'], '-events': ['-n', '1000', '-e'], '-all': ['-n', '100', '-a'],
            '-seconds': ['-D', '2']}
    for crc in ('on', 'off'):
        for verb in ('write', 'read', 'send'):
            for what in ('bw', 'lat'):
                for way, options in ways.items():
                    if (way == '-inline' and verb == 'read' or way in ('-srq', '-events') and verb != 'send' or
                            what == 'lat' and way in ('-8-queue-pairs', '-both', '-lists')):
                        continue
                    words = [f'ib_{verb}_{what}', '-R', '-F', '-p', 'PORT', *options]
                    yield Cell(f'{verb}_{what}{way}-crc-{crc}', [*words, '127.0.0.1'], words, ['--crc', crc], most=5 if way == '-all' else MANY)


def atomics():
    for what in ('bw', 'lat'):
        for kind in ('FETCH_AND_ADD', 'CMP_AND_SWAP'):
            words = [f'ib_atomic_{what}', '-R', '-F', '-p', 'PORT', '-A', kind, '-n', '1000']
            yield Cell(f'atomic_{what}-{kind.lower()}', [*words, '127.0.0.1'], words, ['--rfc7306'])


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


def qperf():
    for test in ('rc_lat', 'rc_bw', 'rc_bi_bw', 'rc_rdma_read_bw', 'rc_rdma_read_lat'):
        yield Cell('qperf-' + test, ['qperf', '-lp', 'PORT', '-cm1', '-t', '1', '127.0.0.1', test], ['qperf', '-lp', 'PORT'], server_stays=True,
                   in_short=test == 'rc_rdma_read_bw')
    # Immediate data and Atomics.
    for test in ('rc_rdma_write_lat', 'rc_rdma_write_bw', 'rc_rdma_write_poll_lat', 'rc_compare_swap_mr', 'rc_fetch_add_mr'):
        yield Cell('qperf-' + test, ['qperf', '-lp', 'PORT', '-cm1', '-t', '1', '127.0.0.1', test], ['qperf', '-lp', 'PORT'], ['--rfc7306'],
                   server_stays=True, in_short=test in ('rc_rdma_write_lat', 'rc_fetch_add_mr'))


def all_cells():
    return [cell for group in (rdmacm_utils, rsockets, perftest, atomics, mpi, libfabric, qperf) for cell in group()]
