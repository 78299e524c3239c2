"""Several clients at a time: bench_rpc_load, a process for each, through two relays and through two gateways with one worker
each and with two, in turn."""
import json
import statistics
import subprocess

OPERATIONS = (("null", 0, 8), ("read", 64 << 10, 8), ("write", 64 << 10, 8))
CLIENTS = (1, 2, 4)
WORKERS = (1, 2)


class Workers:
    """`bench` starts and ends the processes; see bench/gateway."""

    def __init__(self, bench, load, options):
        self.bench, self.load, self.options = bench, load, options

    def begin(self, free_ports):
        direct, relay, relayed = free_ports(3)
        self.bench.start(direct, self.load, "serve", str(direct))
        self.bench.relay(relay, direct)
        self.bench.relay(relayed, relay)
        self.ways = {"two relays": relayed}
        for workers in WORKERS:
            rdma, front = free_ports(2)
            self.bench.gateways(direct, rdma, front, "--workers", str(workers))
            self.ways[workers] = front

    def sample(self, way, operation, size, depth, clients):
        """RPCs in a second, of all clients together."""
        command = [str(self.load), "run", str(self.ways[way]), operation, str(size), str(depth), str(self.options.seconds)]
        running = [self.bench.spawn(command, stdout=subprocess.PIPE) for _ in range(clients)]
        rate = 0
        for client in running:
            out = json.loads(client.communicate(timeout=120)[0])
            rate += out["rpcs"] / out["seconds"]
            self.bench.children.remove(client)
        return rate

    def run(self, progress):
        results = {}
        for turn in range(self.options.turns):
            for operation in OPERATIONS:
                for clients in CLIENTS:
                    for way in self.ways:
                        progress(f"turn {turn + 1} of {self.options.turns}: {operation[0]} of {clients} clients, {way}")
                        results.setdefault((operation, clients, way), []).append(self.sample(way, *operation, clients))
        progress("")
        return results


def report(results):
    def against(mine, other):
        ratios = [a / b for a, b in zip(mine, other)]
        return {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}

    rows = []
    print(f"{'x 8 outstanding':<16}{'clients':>7}  {'RPC/s: relays':>13}{'1 worker':>10}{'2 workers':>10}   {'2 of 1 worker':<18}2 workers of the relays")
    for operation, clients in dict.fromkeys(key[:2] for key in results):
        relays, one, two = (results[operation, clients, way] for way in ("two relays", *WORKERS))
        row = {"operation": operation[0], "bytes": operation[1], "depth": operation[2], "clients": clients,
               "rate": {"relays": statistics.median(relays), "1": statistics.median(one), "2": statistics.median(two)},
               "two_of_one": against(two, one), "two_of_relays": against(two, relays)}
        rows.append(row)
        texts = ["{median:.2f} ({lowest:.2f}-{highest:.2f})".format(**row[key]) for key in ("two_of_one", "two_of_relays")]
        name = operation[0] + (f" {operation[1] >> 10} KiB" if operation[1] else "")
        print(f"{name:<16}{clients:>7}  {row['rate']['relays']:>13.0f}{row['rate']['1']:>10.0f}{row['rate']['2']:>10.0f}   "
              f"{texts[0]:<18}{texts[1]}")
    return rows
