"""What the tests of programs over the drop-in libraries share."""
import socket

LISTEN = '0A'


def free_port():
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(('::', 0))
        return probe.getsockname()[1]


def listens(port):
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        with open(table, encoding='ascii') as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if int(fields[1].rsplit(':', 1)[1], 16) == port and fields[3] == LISTEN:
                    return True
    return False
