/* What programs of libfabric ask of the verbs, with the data compared: messages of all sizes, messages that nobody waits for yet, Writes and Reads.
 *   fabric_program msg|rdm ADDRESS PORT             waits there for the other
 *   fabric_program msg|rdm ADDRESS PORT connect     connects
 * msg: connected endpoints of provider verbs; rdm: those of verbs;ofi_rxm, which know each other by address. Exit status 0: all was right. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pattern.h"

enum { kMost = (1 << 20) + 3, kRounds = 20, kUnexpected = 64, kUnexpectedOctets = 512, kPatience = 30 /* seconds */ };

/* First what the provider keeps there. */
struct operation {
  struct fi_context2 room;
  int done;
};

/* What the other needs to know of one. */
struct introduction {
  uint64_t address, key;
  uint64_t name_octets;
  unsigned char name[128];
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *events;
static struct fid_cq *completions;
static struct fid_pep *listener;
static struct fid_ep *endpoint;
static struct fid_av *addresses;
static struct fid_mr *registered;
static fi_addr_t peer = FI_ADDR_UNSPEC;
static struct introduction other;
static unsigned char *memory; /* out, in, and what the other reads and writes: kMost each */
static unsigned char *out, *in, *shared;
static int connects, by_address, sleeps;

static void fail(const char *what, int why) {
  fprintf(stderr, "%s: %s: %s\n", connects ? "client" : "server", what, fi_strerror(why < 0 ? -why : why));
  exit(1);
}

static void must(int result, const char *what) {
  if (result < 0) fail(what, result);
}

static void check(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s: %s: wrong data\n", connects ? "client" : "server", what);
  exit(1);
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Polls, or sleeps, until the operation has completed. */
static void await(struct operation *one, const char *what) {
  const double until = now() + kPatience;
  while (!one->done) {
    struct fi_cq_entry entry;
    const ssize_t got = sleeps ? fi_cq_sread(completions, &entry, 1, NULL, 1000) : fi_cq_read(completions, &entry, 1);
    if (got == 1 && entry.op_context != NULL) ((struct operation *)entry.op_context)->done = 1;
    if (got == -FI_EAVAIL) {
      struct fi_cq_err_entry error = {0};
      fi_cq_readerr(completions, &error, 0);
      fail(what, error.err);
    }
    if (got < 0 && got != -FI_EAGAIN && got != -FI_EINTR) fail(what, (int)got);
    if (now() > until) fail(what, FI_ETIMEDOUT);
  }
}

/* Until the provider has room for it: completions of others are noted meanwhile. */
#define POST(call, what)                                                                   \
  do {                                                                                     \
    ssize_t posted;                                                                        \
    const double until = now() + kPatience;                                                \
    while ((posted = (call)) == -FI_EAGAIN) {                                              \
      struct fi_cq_entry entry;                                                            \
      if (fi_cq_read(completions, &entry, 1) == 1 && entry.op_context != NULL)             \
        ((struct operation *)entry.op_context)->done = 1;                                  \
      if (now() > until) fail(what, FI_ETIMEDOUT);                                         \
    }                                                                                      \
    must((int)posted, what);                                                               \
  } while (0)

static void receive(struct operation *one, unsigned char *to, size_t octets) {
  one->done = 0;
  POST(fi_recv(endpoint, to, octets, fi_mr_desc(registered), FI_ADDR_UNSPEC, one), "fi_recv");
}

static void send_from(struct operation *one, const unsigned char *from, size_t octets) {
  one->done = 0;
  POST(fi_send(endpoint, from, octets, fi_mr_desc(registered), peer, one), "fi_send");
}

static void await_event(uint32_t wanted, struct fi_eq_cm_entry *entry) {
  uint32_t got = 0;
  const ssize_t octets = fi_eq_sread(events, &got, entry, sizeof *entry, kPatience * 1000, 0);
  if (octets == -FI_EAVAIL) {
    struct fi_eq_err_entry error = {0};
    fi_eq_readerr(events, &error, 0);
    fail("event queue", error.err);
  }
  must((int)octets, "fi_eq_sread");
  if (got != wanted) fail("another event than expected", FI_EOTHER);
}

static void find(const char *kind, const char *address, const char *port) {
  struct fi_info *const hints = fi_allocinfo();
  if (hints == NULL) fail("fi_allocinfo", FI_ENOMEM);
  hints->ep_attr->type = by_address ? FI_EP_RDM : FI_EP_MSG;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = strdup(by_address ? "verbs;ofi_rxm" : "verbs");
  must(fi_getinfo(FI_VERSION(1, 17), address, port, connects ? 0 : FI_SOURCE, hints, &info), "fi_getinfo");
  fi_freeinfo(hints);
  printf("%s: provider %s, domain %s\n", kind, info->fabric_attr->prov_name, info->domain_attr->name);
}

static void open_endpoint(struct fi_info *with) {
  must(fi_domain(fabric, with, &domain, NULL), "fi_domain");
  struct fi_cq_attr asked = {.size = 1024, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC};
  must(fi_cq_open(domain, &asked, &completions, NULL), "fi_cq_open");
  must(fi_endpoint(domain, with, &endpoint, NULL), "fi_endpoint");
  if (by_address) {
    struct fi_av_attr table = {.type = FI_AV_UNSPEC, .count = 2};
    must(fi_av_open(domain, &table, &addresses, NULL), "fi_av_open");
    must(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind of addresses");
  } else {
    must(fi_ep_bind(endpoint, &events->fid, 0), "fi_ep_bind of events");
  }
  must(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of completions");
  must(fi_enable(endpoint), "fi_enable");
  const uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  must(fi_mr_reg(domain, memory, 3 * (size_t)kMost, access, 0, 0, 0, &registered, NULL), "fi_mr_reg");
}

/* Connected, or with the other's address where it connects. The Receive of the introduction is posted. */
static void reach(struct operation *introduced) {
  must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
  struct fi_eq_attr asked = {.wait_obj = FI_WAIT_UNSPEC};
  must(fi_eq_open(fabric, &asked, &events, NULL), "fi_eq_open");
  struct fi_eq_cm_entry entry;
  if (by_address) {
    open_endpoint(info);
    if (connects && fi_av_insert(addresses, info->dest_addr, 1, &peer, 0, NULL) != 1) fail("fi_av_insert", FI_EINVAL);
    receive(introduced, in, sizeof(struct introduction));
  } else if (connects) {
    open_endpoint(info);
    receive(introduced, in, sizeof(struct introduction));
    must(fi_connect(endpoint, info->dest_addr, NULL, 0), "fi_connect");
    await_event(FI_CONNECTED, &entry);
  } else {
    must(fi_passive_ep(fabric, info, &listener, NULL), "fi_passive_ep");
    must(fi_pep_bind(listener, &events->fid, 0), "fi_pep_bind");
    must(fi_listen(listener), "fi_listen");
    await_event(FI_CONNREQ, &entry);
    open_endpoint(entry.info);
    receive(introduced, in, sizeof(struct introduction));
    must(fi_accept(endpoint, NULL, 0), "fi_accept");
    fi_freeinfo(entry.info);
    await_event(FI_CONNECTED, &entry);
  }
}

/* Each tells the other where it may be read and written; the one that connects begins, as the other does not know its address yet. */
static void introduce(void) {
  struct operation heard, told;
  reach(&heard);
  struct introduction mine = {.address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)shared : 2 * (uint64_t)kMost, .key = fi_mr_key(registered)};
  size_t room = sizeof mine.name;
  if (by_address) must(fi_getname(&endpoint->fid, mine.name, &room), "fi_getname");
  mine.name_octets = room;
  memcpy(out, &mine, sizeof mine);
  if (connects) send_from(&told, out, sizeof mine);
  await(&heard, "introduction");
  memcpy(&other, in, sizeof other);
  if (!connects) {
    if (by_address && fi_av_insert(addresses, other.name, 1, &peer, 0, NULL) != 1) fail("fi_av_insert", FI_EINVAL);
    send_from(&told, out, sizeof mine);
  }
  await(&told, "introduction");
}

/* A message of one octet, after which the other goes on. */
static void step(int mine) {
  struct operation one;
  if (mine) {
    send_from(&one, out, 1);
  } else {
    receive(&one, in, 1);
  }
  await(&one, "step");
}

static void ping_pong(void) {
  static const size_t kSizes[] = {1, 8, 64, 2048, 12288, 65536, 1 << 20, kMost};
  for (size_t which = 0; which < sizeof kSizes / sizeof *kSizes; ++which) {
    const size_t size = kSizes[which];
    sleeps = 0;
    for (int round = 0; round < kRounds; ++round) {
      struct operation came, went;
      if (round == kRounds / 2) sleeps = 1;
      memset(in, 0, size);
      receive(&came, in, size);
      if (connects) {
        fill(out, size, round);
        send_from(&went, out, size);
        await(&came, "pong");
        check(filled(in, size, round + 1), "pong");
        await(&went, "ping");
      } else {
        await(&came, "ping");
        check(filled(in, size, round), "ping");
        fill(out, size, round + 1);
        send_from(&went, out, size);
        await(&went, "pong");
      }
    }
  }
}

/* Messages that wait for the Receives of the other, which come late. */
static void unexpected(void) {
  static struct operation all[kUnexpected];
  if (connects) {
    for (int at = 0; at < kUnexpected; ++at) {
      fill(out + at * kUnexpectedOctets, kUnexpectedOctets, at);
      send_from(&all[at], out + at * kUnexpectedOctets, kUnexpectedOctets);
    }
  } else {
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    for (int at = 0; at < kUnexpected; ++at) receive(&all[at], in + at * kUnexpectedOctets, kUnexpectedOctets);
  }
  for (int at = 0; at < kUnexpected; ++at) {
    await(&all[at], "messages that nobody waited for");
    if (!connects) check(filled(in + at * kUnexpectedOctets, kUnexpectedOctets, at), "messages that nobody waited for");
  }
  step(!connects);
}

static void write_and_read(void) {
  static const size_t kSizes[] = {1, 4096, 65536, kMost};
  void *const mine = fi_mr_desc(registered);
  for (size_t which = 0; which < sizeof kSizes / sizeof *kSizes; ++which) {
    const size_t size = kSizes[which];
    sleeps = which % 2 == 1;
    for (int round = 0; round < 5; ++round) {
      struct operation one = {.done = 0};
      if (connects) {
        fill(out, size, round);
        POST(fi_write(endpoint, out, size, mine, peer, other.address, other.key, &one), "fi_write");
        await(&one, "fi_write");
        step(1); /* behind the Write */
        step(0); /* it has looked, and written something else there */
        memset(in, 0, size);
        one.done = 0;
        POST(fi_read(endpoint, in, size, mine, peer, other.address, other.key, &one), "fi_read");
        await(&one, "fi_read");
        check(filled(in, size, round + 100), "fi_read");
        step(1);
      } else {
        step(0);
        check(filled(shared, size, round), "fi_write");
        fill(shared, size, round + 100);
        step(1);
        step(0);
      }
    }
  }
  sleeps = 0;
}

static void close_all(void) {
  struct fi_eq_cm_entry entry;
  if (!by_address && connects) must(fi_shutdown(endpoint, 0), "fi_shutdown");
  if (!by_address && !connects) await_event(FI_SHUTDOWN, &entry);
  struct fid *const things[] = {&endpoint->fid, listener == NULL ? NULL : &listener->fid, &registered->fid, addresses == NULL ? NULL : &addresses->fid,
                                &completions->fid, &domain->fid, &events->fid, &fabric->fid};
  for (size_t at = 0; at < sizeof things / sizeof *things; ++at) {
    if (things[at] != NULL) must(fi_close(things[at]), "fi_close");
  }
  fi_freeinfo(info);
  free(memory);
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5 || (strcmp(argv[1], "msg") != 0 && strcmp(argv[1], "rdm") != 0)) {
    fprintf(stderr, "usage: %s msg|rdm ADDRESS PORT [connect]\n", argv[0]);
    return 2;
  }
  by_address = strcmp(argv[1], "rdm") == 0;
  connects = argc == 5;
  memory = malloc(3 * (size_t)kMost);
  if (memory == NULL) return 2;
  out = memory;
  in = memory + kMost;
  shared = memory + 2 * (size_t)kMost;
  memset(memory, 0, 3 * (size_t)kMost);
  find(argv[1], argv[2], argv[3]);
  introduce();
  ping_pong();
  unexpected();
  write_and_read();
  step(connects);
  close_all();
  printf("right\n");
  return 0;
}
