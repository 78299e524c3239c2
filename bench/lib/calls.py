"""Several calls outstanding through the gateways: bench_rpc_load runs against its own server straight, through two relays and
through two gateways, in turn."""
import json
import statistics
import subprocess
import time

OPERATIONS = [("null", 0)] + [(name, size) for name in ("read", "write") for size in (4 << 10, 64 << 10, 1 << 20)]
DEPTHS = (1, 8, 32)
BULK_READERS = 4
BESIDE_SECONDS = 2


def size_name(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size else ""


class Calls:
    """`bench` starts and ends the processes; see bench/gateway."""

    def __init__(self, bench, load, options):
        self.bench, self.load, self.options = bench, load, options

    def begin(self, free_ports):
        direct, rdma, ours, relay, relayed = free_ports(5)
        server = self.bench.start(direct, self.load, "serve", str(direct))
        gateways = self.bench.gateways(direct, rdma, ours)
        relays = [self.bench.relay(relay, direct), self.bench.relay(relayed, relay)]
        self.server = server
        self.ways = {"straight": (direct, []), "two relays": (relayed, relays), "two gateways": (ours, gateways)}

    def command(self, way, operation, size, depth, seconds=None):
        return [str(self.load), "run", str(self.ways[way][0]), operation, str(size), str(depth), str(seconds or self.options.seconds)]

    def sample(self, way, operation, size, depth, seconds=None):
        processes = self.ways[way][1]
        before = sum(map(self.bench.cpu_seconds, processes))
        done = subprocess.run(self.command(way, operation, size, depth, seconds), stdout=subprocess.PIPE, timeout=120,
                              check=True)
        if way == "two relays":
            time.sleep(0.2)  # socat's children end, and are counted
        cpu = sum(map(self.bench.cpu_seconds, processes)) - before
        out = json.loads(done.stdout)
        return {"rate": out["rpcs"] / out["seconds"], "cpu_us": cpu / max(out["all_rpcs"], 1) * 1e6,
                "median_us": out["median_us"] if out["rpcs"] else float("inf"), "p99_us": out["p99_us"] if out["rpcs"] else float("inf")}

    def beside_bulk(self, way):
        """NULL, one at a time, beside connections that read 1 MiB at a depth of 8."""
        bulk = self.command(way, "read", 1 << 20, 8, BESIDE_SECONDS + 1)
        readers = [self.bench.spawn(bulk, stdout=subprocess.DEVNULL) for _ in range(BULK_READERS)]
        time.sleep(0.5)
        out = self.sample(way, "null", 0, 1, BESIDE_SECONDS)
        for reader in readers:
            if reader.wait(120) != 0:
                raise SystemExit("bench/gateway: a bulk reader failed")
            self.bench.children.remove(reader)
        return out

    def run(self, progress):
        cases = [c for c in ((*operation, depth) for operation in OPERATIONS for depth in DEPTHS) if self.wanted(*c)]
        results = {}
        for turn in range(self.options.turns):
            for case in cases:
                for way in self.ways:
                    progress(f"turn {turn + 1} of {self.options.turns}: {case[0]} {size_name(case[1])} x {case[2]}, {way}")
                    results.setdefault((*case, way), []).append(self.sample(way, *case))
            for way in self.ways:
                progress(f"turn {turn + 1} of {self.options.turns}: beside bulk readers, {way}")
                results.setdefault(("beside", 0, 1, way), []).append(self.beside_bulk(way))
        progress("")
        return results

    def wanted(self, operation, size, depth):
        name = f"{operation}{size_name(size).replace(' ', '')}x{depth}"
        return not self.options.rows or any(row in name for row in self.options.rows.split(","))


def ratio(mine, other):
    values = [a["rate"] / b["rate"] for a, b in zip(mine, other)]
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def report(results):
    def median(samples, key):
        return statistics.median(s[key] for s in samples)

    rows = []
    print(f"{'NFSv3-shaped':<15}{'depth':>5}  {'RPC/s: straight':>15}{'relays':>9}{'gateways':>9}   {'of straight':<18}"
          f"{'of the relays':<18}  CPU us per RPC: relays, gateways")
    for operation, size, depth in dict.fromkeys(key[:3] for key in results if key[0] != "beside"):
        straight, relays, gateways = (results[operation, size, depth, way] for way in ("straight", "two relays", "two gateways"))
        row = {"operation": operation, "bytes": size, "depth": depth, "of_straight": ratio(gateways, straight),
               "of_relays": ratio(gateways, relays), "relays_of_straight": ratio(relays, straight),
               "rate": {"straight": median(straight, "rate"), "relays": median(relays, "rate"), "gateways": median(gateways, "rate")},
               "cpu_us": {"relays": median(relays, "cpu_us"), "gateways": median(gateways, "cpu_us")},
               "median_us": {"straight": median(straight, "median_us"), "relays": median(relays, "median_us"),
                             "gateways": median(gateways, "median_us")}}
        rows.append(row)
        texts = ["{median:.2f} ({lowest:.2f}-{highest:.2f})".format(**row[key]) for key in ("of_straight", "of_relays")]
        print(f"{operation + ' ' + size_name(size):<15}{depth:>5}  {row['rate']['straight']:>15.0f}{row['rate']['relays']:>9.0f}"
              f"{row['rate']['gateways']:>9.0f}   {texts[0]:<18}{texts[1]:<18}  {row['cpu_us']['relays']:.1f}, {row['cpu_us']['gateways']:.1f}")
    for way in ("straight", "two relays", "two gateways"):
        samples = results["beside", 0, 1, way]
        rows.append({"operation": "null beside bulk readers", "way": way, "median_us": median(samples, "median_us"),
                     "p99_us": median(samples, "p99_us")})
        print(f"null beside {BULK_READERS} readers of 1 MiB x 8, {way}: median {rows[-1]['median_us'] / 1e3:.2f} ms, "
              f"p99 {rows[-1]['p99_us'] / 1e3:.2f} ms")
    return rows
