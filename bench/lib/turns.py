"""One sample of a row of `iwarp perf run`, and the quartiles of many: for comparisons that measure two things in turn."""
import json
import signal
import statistics
import subprocess


class CannotMeasure(Exception):
    pass


def measured(program, row, seconds):
    """The row as `iwarp perf run --json` has it."""
    command = [program, 'perf', 'run', *row, '--pairs', '1', '--seconds', seconds, '--congestion', 'cubic', '--no-verify', '--json']
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except OSError as error:
        raise CannotMeasure(f'{program}: {error.strerror}') from error
    if done.returncode in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if done.returncode != 0:
        raise CannotMeasure(f'{" ".join(command)}: exit status {done.returncode}\n{done.stderr.decode()}')
    return json.loads(done.stdout)['rows'][0]


def measure(program, row, seconds):
    """Its value; more is better."""
    line = measured(program, row, seconds)
    value = line['iwarp']['value']
    return value if line['unit'].endswith('/s') else 1 / value


def quartiles(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return low, middle, high
