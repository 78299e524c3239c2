/* Serves store.x: `store_server tcp` over TCP, `store_server rdma` over RPC-over-RDMA, `store_server rdma6` over IPv6, at
   any free port, which it prints; with `rpcbind` behind it, rpcbind is told. The procedures, and the dispatch that rpcgen makes, are the same for both. */
#include <arpa/inet.h>
#include <rpc/rpc.h>
#include <rpc/svc_auth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "iwarp/tirpc/rpcrdma.h"
#include "store.h"

enum { kMostItems = 64 };
static item items[kMostItems];
static int count = 0;
static int notes = 0;

static item *find(const char *name) {
  for (int i = 0; i < count; i++) {
    if (strcmp(items[i].name, name) == 0) return &items[i];
  }
  return NULL;
}

int *store_put_1_svc(item *args, struct svc_req *req) {
  static int status;
  (void)req;
  item *kept = find(args->name);
  if (kept == NULL && count == kMostItems) {
    status = 1;
    return &status;
  }
  if (kept == NULL) {
    kept = &items[count++];
    kept->name = strdup(args->name);
  }
  free(kept->data.data_t_val);
  kept->data.data_t_len = args->data.data_t_len;
  kept->data.data_t_val = malloc(args->data.data_t_len > 0 ? args->data.data_t_len : 1);
  memcpy(kept->data.data_t_val, args->data.data_t_val, args->data.data_t_len);
  status = 0;
  return &status;
}

fetched *store_get_1_svc(name_t *name, struct svc_req *req) {
  static fetched out;
  (void)req;
  const item *kept = find(*name);
  out.status = kept == NULL ? 2 : 0;
  if (kept != NULL) out.fetched_u.data = kept->data;
  return &out;
}

quad_t *store_sum_1_svc(sum_args *args, struct svc_req *req) {
  static quad_t sum;
  (void)req;
  sum = 0;
  for (u_int i = 0; i < args->values.values_len; i++) sum += args->values.values_val[i];
  return &sum;
}

int *store_count_1_svc(void *none, struct svc_req *req) {
  (void)none, (void)req;
  return &count;
}

void *store_note_1_svc(int *what, struct svc_req *req) {
  (void)req;
  notes += *what;
  return NULL; /* no answer */
}

int *store_notes_1_svc(void *none, struct svc_req *req) {
  (void)none, (void)req;
  return &notes;
}

u_int *store_who_1_svc(void *none, struct svc_req *req) {
  static u_int who;
  (void)none;
  who = req->rq_cred.oa_flavor == AUTH_SYS ? ((struct authunix_parms *)req->rq_clntcred)->aup_uid : 4294967295u;
  return &who;
}

extern void store_prog_1(struct svc_req *, SVCXPRT *); /* of rpcgen */

static SVCXPRT *over_tcp(void) {
  struct sockaddr_in any = {.sin_family = AF_INET};
  socklen_t length = sizeof any;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&any, length) != 0 || listen(fd, 16) != 0) return NULL;
  getsockname(fd, (struct sockaddr *)&any, &length);
  SVCXPRT *xprt = svc_vc_create(fd, 0, 0);
  if (xprt != NULL) xprt->xp_port = ntohs(any.sin_port);
  return xprt;
}

static SVCXPRT *over_rdma(const char *host) {
  const struct rpcrdma_bulk bulk[] = {
      {.prog = STORE_PROG, .vers = STORE_VERS, .proc = STORE_GET, .in_results = 1, .offset = 4, .max_bytes = MAXDATA,
       .in_union = 1, .arm_offset = 0, .arm_value = 0}};
  const struct rpcrdma_options options = {
      .size = sizeof options, .max_message_bytes = MAXDATA + 65536, .bulk = bulk, .bulk_count = 1};
  return svc_rpcrdma_create(host, 0, &options);
}

int main(int argc, char **argv) {
  const int rdma6 = argc > 1 && strcmp(argv[1], "rdma6") == 0;
  const int rdma = rdma6 || (argc > 1 && strcmp(argv[1], "rdma") == 0);
  SVCXPRT *xprt = rdma ? over_rdma(rdma6 ? "::" : NULL) : over_tcp();
  if (xprt == NULL || !svc_reg(xprt, STORE_PROG, STORE_VERS, store_prog_1, NULL)) {
    perror("store_server");
    return 1;
  }
  if (argc > 2 && strcmp(argv[2], "rpcbind") == 0 && (!rdma || !svc_rpcrdma_set(xprt, STORE_PROG, STORE_VERS))) {
    perror("store_server: rpcbind");
    return 1;
  }
  printf("listening on port %u\n", xprt->xp_port);
  fflush(stdout);
  svc_run();
  return 1;
}
