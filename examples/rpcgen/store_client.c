/* Calls store.x: `store_client tcp HOST PORT` or `store_client rdma HOST PORT`, PORT 0: that which rpcbind knows. Prints
   what the server answers, the same whichever it is: the stubs that rpcgen makes know nothing of it. */
#include <netdb.h>
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "iwarp/tirpc/rpcrdma.h"
#include "store.h"

static CLIENT *over_tcp(const char *host, const char *port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
  if (getaddrinfo(host, port, &hints, &found) != 0) return NULL;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct netbuf address = {found->ai_addrlen, found->ai_addrlen, found->ai_addr};
  CLIENT *clnt = clnt_vc_create(fd, &address, STORE_PROG, STORE_VERS, 0, 0);
  freeaddrinfo(found);
  return clnt;
}

static CLIENT *over_rdma(const char *host, unsigned short port) {
  const struct rpcrdma_bulk bulk[] = {
      {.prog = STORE_PROG, .vers = STORE_VERS, .proc = STORE_GET, .in_results = 1, .offset = 4, .max_bytes = MAXDATA,
       .in_union = 1, .arm_offset = 0, .arm_value = 0}};
  const struct rpcrdma_options options = {
      .size = sizeof options, .max_message_bytes = MAXDATA + 65536, .bulk = bulk, .bulk_count = 1};
  return clnt_rpcrdma_create(host, STORE_PROG, STORE_VERS, port, &options);
}

static int failed(CLIENT *clnt, const char *what) {
  clnt_perror(clnt, (char *)what);
  return 1;
}

/* Puts that many octets under a name and gets them back. */
static int there_and_back(CLIENT *clnt, char *name, u_int octets) {
  item it = {.name = name, .data = {octets, malloc(octets > 0 ? octets : 1)}};
  for (u_int i = 0; i < octets; i++) it.data.data_t_val[i] = (char)(i * 31 + octets);
  const int *put = store_put_1(&it, clnt);
  if (put == NULL) return failed(clnt, "put");
  fetched *got = store_get_1(&name, clnt);
  if (got == NULL) return failed(clnt, "get");
  const int same = got->status == 0 && got->fetched_u.data.data_t_len == octets &&
                   memcmp(got->fetched_u.data.data_t_val, it.data.data_t_val, octets) == 0;
  printf("%s: put %d, get %d, %u octets %s\n", name, *put, got->status, octets, same ? "unchanged" : "lost");
  clnt_freeres(clnt, (xdrproc_t)xdr_fetched, got);
  memset(got, 0, sizeof *got);
  free(it.data.data_t_val);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  CLIENT *clnt =
      strcmp(argv[1], "rdma") == 0 ? over_rdma(argv[2], (unsigned short)atoi(argv[3])) : over_tcp(argv[2], argv[3]);
  if (clnt == NULL) {
    clnt_pcreateerror("store_client");
    return 1;
  }
  if (there_and_back(clnt, "nothing", 0) || there_and_back(clnt, "short", 5) || there_and_back(clnt, "page", 4096) ||
      there_and_back(clnt, "long", 1 << 20) || there_and_back(clnt, "longest", MAXDATA)) {
    return 1;
  }
  name_t missing = "missing";
  const fetched *none = store_get_1(&missing, clnt);
  if (none == NULL) return failed(clnt, "get");
  printf("missing: get %d\n", none->status);
  int values[] = {1, -2, 2147483647, 2147483647};
  sum_args args = {.values = {4, values}};
  const quad_t *sum = store_sum_1(&args, clnt);
  if (sum == NULL) return failed(clnt, "sum");
  printf("sum: %lld\n", (long long)*sum);
  const int *count = store_count_1(NULL, clnt);
  if (count == NULL) return failed(clnt, "count");
  printf("count: %d\n", *count);

  /* Batched calls: no results, no time. The call behind them finds all of them done. */
  const struct timeval no_time = {0, 0};
  for (int i = 1; i <= 200; i++) {
    const enum clnt_stat sent = clnt_call(clnt, STORE_NOTE, (xdrproc_t)xdr_int, (caddr_t)&i, NULL, NULL, no_time);
    if (sent != RPC_SUCCESS) return failed(clnt, "note");
  }
  const int *notes = store_notes_1(NULL, clnt);
  if (notes == NULL) return failed(clnt, "notes");
  printf("notes: %d\n", *notes);

  const u_int *who = store_who_1(NULL, clnt);
  if (who == NULL) return failed(clnt, "who");
  printf("AUTH_NONE: %u\n", *who);
  auth_destroy(clnt->cl_auth);
  clnt->cl_auth = authunix_create((char *)"client", 1234, 100, 0, NULL);
  who = store_who_1(NULL, clnt);
  if (who == NULL) return failed(clnt, "who");
  printf("AUTH_SYS: %u\n", *who);

  /* What is not there. */
  const struct timeval patience = {5, 0};
  printf("procedure 99: %s\n",
         clnt_sperrno(clnt_call(clnt, 99, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, patience)));
  u_int32_t version = 9;
  clnt_control(clnt, CLSET_VERS, &version);
  printf("version 9: %s\n",
         clnt_sperrno(clnt_call(clnt, 0, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, patience)));
  struct rpc_err error;
  clnt_geterr(clnt, &error);
  printf("versions from %u to %u\n", (unsigned)error.re_vers.low, (unsigned)error.re_vers.high);
  auth_destroy(clnt->cl_auth);
  clnt_destroy(clnt);
  return 0;
}
