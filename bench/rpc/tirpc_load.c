/* bench_tirpc serve tcp|rdma|rdma-no-crc OCTETS
     Serves at any free port of 127.0.0.1, which it prints, until it is killed.
   bench_tirpc run tcp|rdma|rdma-no-crc PORT null|read|write OCTETS THREADS SECONDS
     Calls it from so many threads, each with a handle of its own that waits for each Reply, and prints one line of JSON: calls,
     seconds, and the seconds of processor time that either end took meanwhile. Before that each thread compares data.

   The same program, procedures and libtirpc over TCP and over RDMA: only the lines that make the handles differ. It is that of
   tools/perf/rpc_program.h, and procedure 3, which tells the processor time of the server in microseconds. */
#include <arpa/inet.h>
#include <pthread.h>
#include <rpc/rpc.h>
#include <rpc/svc_auth.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "iwarp/tirpc/rpcrdma.h"

enum { kProgram = 0x20000045, kVersion = 1, kNull = 0, kRead = 1, kWrite = 2, kCpu = 3 };
enum { kMostOctets = 16 << 20, kMostThreads = 256, kHeads = 1024, kSeed = 11 };

struct data {
  u_int length;
  char *octets;
};
struct seeded {
  u_int seed;
  struct data data;
};
struct wanted {
  u_int seed, count;
};

static bool_t xdr_data(XDR *xdrs, struct data *d) { return xdr_bytes(xdrs, &d->octets, &d->length, kMostOctets); }
static bool_t xdr_seeded(XDR *xdrs, struct seeded *s) { return xdr_u_int(xdrs, &s->seed) && xdr_data(xdrs, &s->data); }
static bool_t xdr_wanted(XDR *xdrs, struct wanted *w) { return xdr_u_int(xdrs, &w->seed) && xdr_u_int(xdrs, &w->count); }

static bool_t nothing(XDR *xdrs, ...) {
  (void)xdrs;
  return TRUE;
}

static void die(const char *what) {
  fprintf(stderr, "bench_tirpc: %s\n", what);
  exit(1);
}

static void *some(size_t octets) {
  void *const memory = calloc(octets > 0 ? octets : 1, 1);
  if (memory == NULL) die("no memory");
  return memory;
}

static char octet(uint64_t position, uint64_t seed) {
  return (char)(((position + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1B54A32D192ED03u) >> 56);
}
static void fill(struct data *d, u_int seed) {
  for (u_int i = 0; i < d->length; i++) d->octets[i] = octet(i, seed);
}
static int is_filled(const struct data *d, u_int length, u_int seed) {
  if (d->length != length) return 0;
  for (u_int i = 0; i < d->length; i++) {
    if (d->octets[i] != octet(i, seed)) return 0;
  }
  return 1;
}

static uint64_t cpu_microseconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u + (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int over_rdma(const char *way, struct rpcrdma_options *options, struct rpcrdma_bulk *bulk, u_int octets) {
  memset(options, 0, sizeof *options);
  memset(bulk, 0, 2 * sizeof *bulk);
  bulk[0] = (struct rpcrdma_bulk){.prog = kProgram, .vers = kVersion, .proc = kRead, .in_results = 1, .max_bytes = octets};
  bulk[1] = (struct rpcrdma_bulk){.prog = kProgram, .vers = kVersion, .proc = kWrite, .offset = 4};
  options->size = sizeof *options;
  options->max_message_bytes = octets + kHeads;
  options->bulk = bulk;
  options->bulk_count = 2;
  options->no_crc = strcmp(way, "rdma-no-crc") == 0;
  if (strcmp(way, "tcp") != 0 && strcmp(way, "rdma") != 0 && !options->no_crc) die("tcp, rdma or rdma-no-crc?");
  return strcmp(way, "tcp") != 0;
}

/* --- server: one thread, in svc_run() */

static struct data ready, sink, scratch;

static void dispatch(struct svc_req *req, SVCXPRT *xprt) {
  struct wanted wanted;
  struct seeded given = {.data = sink};
  u_int good;
  switch (req->rq_proc) {
    case kNull:
      svc_sendreply(xprt, nothing, NULL);
      return;
    case kRead:
      if (!svc_getargs(xprt, (xdrproc_t)xdr_wanted, (caddr_t)&wanted) || wanted.count != ready.length) break;
      if (wanted.seed != 0) fill(&scratch, wanted.seed);
      svc_sendreply(xprt, (xdrproc_t)xdr_data, (caddr_t)(wanted.seed == 0 ? &ready : &scratch));
      return;
    case kWrite:
      if (!svc_getargs(xprt, (xdrproc_t)xdr_seeded, (caddr_t)&given)) break;
      good = given.seed == 0 || is_filled(&given.data, ready.length, given.seed);
      svc_sendreply(xprt, (xdrproc_t)xdr_u_int, (caddr_t)&good);
      return;
    case kCpu: {
      uint64_t used = cpu_microseconds();
      svc_sendreply(xprt, (xdrproc_t)xdr_u_int64_t, (caddr_t)&used);
      return;
    }
    default:
      svcerr_noproc(xprt);
      return;
  }
  svcerr_decode(xprt);
}

static SVCXPRT *serve_tcp(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, length) != 0 || listen(fd, kMostThreads) != 0) return NULL;
  getsockname(fd, (struct sockaddr *)&at, &length);
  SVCXPRT *xprt = svc_vc_create(fd, 0, 0);
  if (xprt != NULL) xprt->xp_port = ntohs(at.sin_port);
  return xprt;
}

static int serve(const char *way, u_int octets) {
  struct rpcrdma_options options;
  struct rpcrdma_bulk bulk[2];
  ready = (struct data){octets, some(octets)};
  scratch = (struct data){octets, some(octets)};
  sink = (struct data){octets, some(kMostOctets)};
  SVCXPRT *const xprt = over_rdma(way, &options, bulk, octets) ? svc_rpcrdma_create("127.0.0.1", 0, &options) : serve_tcp();
  if (xprt == NULL || !svc_reg(xprt, kProgram, kVersion, dispatch, NULL)) die("cannot serve");
  printf("%u\n", xprt->xp_port);
  fflush(stdout);
  svc_run();
  return 1;
}

/* --- client */

static CLIENT *connect_to(const char *way, uint16_t port, u_int octets) {
  struct rpcrdma_options options;
  struct rpcrdma_bulk bulk[2];
  if (over_rdma(way, &options, bulk, octets)) return clnt_rpcrdma_create("127.0.0.1", kProgram, kVersion, port, &options);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct netbuf address = {sizeof to, sizeof to, &to};
  const int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  CLIENT *const clnt = clnt_vc_create(fd, &address, kProgram, kVersion, 0, 0);
  if (clnt != NULL) clnt_control(clnt, CLSET_FD_CLOSE, NULL);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return clnt;
}

struct caller {
  pthread_t thread;
  CLIENT *clnt;
  rpcproc_t procedure;
  struct data data;
  uint64_t calls;
};

static pthread_barrier_t begin, over;
static double seconds, ended;
static pthread_mutex_t ended_mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct timeval kPatience = {25, 0};

static void need(CLIENT *clnt, enum clnt_stat stat, int right) {
  if (stat != RPC_SUCCESS) {
    clnt_perror(clnt, (char *)"bench_tirpc");
    exit(1);
  }
  if (!right) die("the data arrived damaged");
}

static void call(struct caller *c, u_int seed) {
  struct wanted wanted = {seed, c->data.length};
  struct seeded given = {seed, c->data};
  struct data got = c->data; /* the memory that they are decoded to */
  u_int good = 1;
  switch (c->procedure) {
    case kNull:
      need(c->clnt, clnt_call(c->clnt, kNull, nothing, NULL, nothing, NULL, kPatience), 1);
      return;
    case kRead:
      need(c->clnt, clnt_call(c->clnt, kRead, (xdrproc_t)xdr_wanted, (caddr_t)&wanted, (xdrproc_t)xdr_data, (caddr_t)&got, kPatience),
           got.length == c->data.length);
      if (seed != 0) need(c->clnt, RPC_SUCCESS, is_filled(&got, c->data.length, seed));
      return;
    default:
      if (seed != 0) fill(&given.data, seed);
      need(c->clnt, clnt_call(c->clnt, kWrite, (xdrproc_t)xdr_seeded, (caddr_t)&given, (xdrproc_t)xdr_u_int, (caddr_t)&good, kPatience),
           1);
      need(c->clnt, RPC_SUCCESS, (int)good);
  }
}

static void *run_caller(void *which) {
  struct caller *const c = which;
  call(c, kSeed);
  for (const double warm = now() + 0.02; now() < warm;) call(c, 0);
  pthread_barrier_wait(&begin);
  const double until = now() + seconds;
  double at;
  do {
    call(c, 0);
    c->calls++;
  } while ((at = now()) < until);
  pthread_mutex_lock(&ended_mutex);
  if (at > ended) ended = at;
  pthread_mutex_unlock(&ended_mutex);
  pthread_barrier_wait(&over);
  return NULL;
}

static uint64_t server_cpu(CLIENT *clnt) {
  uint64_t used = 0;
  need(clnt, clnt_call(clnt, kCpu, nothing, NULL, (xdrproc_t)xdr_u_int64_t, (caddr_t)&used, kPatience), 1);
  return used;
}

static int run(const char *way, uint16_t port, rpcproc_t procedure, u_int octets, unsigned threads) {
  struct caller *const callers = some(threads * sizeof *callers);
  CLIENT *const observer = connect_to(way, port, octets);
  if (observer == NULL) die(clnt_spcreateerror((char *)"no connection"));
  pthread_barrier_init(&begin, NULL, threads + 1);
  pthread_barrier_init(&over, NULL, threads + 1);
  for (unsigned i = 0; i < threads; i++) {
    struct caller *const c = &callers[i];
    c->procedure = procedure;
    c->data = (struct data){octets, some(octets)};
    c->clnt = connect_to(way, port, octets);
    if (c->clnt == NULL) die(clnt_spcreateerror((char *)"no connection"));
  }
  for (unsigned i = 0; i < threads; i++) {
    if (pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]) != 0) die("no thread to be had");
  }
  pthread_barrier_wait(&begin);
  const double from = now();
  const uint64_t theirs = server_cpu(observer), ours = cpu_microseconds();
  pthread_barrier_wait(&over);
  const uint64_t ours_after = cpu_microseconds(), theirs_after = server_cpu(observer);
  uint64_t calls = 0;
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(callers[i].thread, NULL);
    calls += callers[i].calls;
    clnt_destroy(callers[i].clnt);
    free(callers[i].data.octets);
  }
  clnt_destroy(observer);
  printf("{\"calls\": %llu, \"seconds\": %.6f, \"client_cpu\": %.6f, \"server_cpu\": %.6f}\n", (unsigned long long)calls, ended - from,
         (double)(ours_after - ours) / 1e6, (double)(theirs_after - theirs) / 1e6);
  free(callers);
  return 0;
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc == 4 && strcmp(argv[1], "serve") == 0) {
    const unsigned long octets = strtoul(argv[3], NULL, 10);
    if (octets >= 1 && octets <= kMostOctets) return serve(argv[2], (u_int)octets);
  }
  if (argc == 8 && strcmp(argv[1], "run") == 0) {
    const rpcproc_t procedure = strcmp(argv[4], "null") == 0 ? kNull : strcmp(argv[4], "read") == 0 ? kRead : kWrite;
    const unsigned long port = strtoul(argv[3], NULL, 10), octets = strtoul(argv[5], NULL, 10), threads = strtoul(argv[6], NULL, 10);
    seconds = strtod(argv[7], NULL);
    if (port >= 1 && port <= 65535 && octets >= 1 && octets <= kMostOctets && threads >= 1 && threads <= kMostThreads && seconds > 0)
      return run(argv[2], (uint16_t)port, procedure, (u_int)octets, (unsigned)threads);
  }
  fputs("usage: bench_tirpc serve tcp|rdma|rdma-no-crc OCTETS\n"
        "       bench_tirpc run tcp|rdma|rdma-no-crc PORT null|read|write OCTETS THREADS SECONDS\n", stderr);
  return 2;
}
