/* RPC-over-RDMA as a transport of libtirpc: programs made by rpcgen call and serve over iWARP with libtirpc's own
   clnt_call(), svc_run(), clnt_control() and svc_reg(); only the line that makes the handle differs. Link with
   -liwarp-tirpc -ltirpc. It includes nothing of libtirpc: CLIENT is struct __rpc_client, SVCXPRT is struct
   __rpc_svcxprt.

     CLIENT *clnt = clnt_rpcrdma_create("server", PROG, VERS, 20049, NULL);

     SVCXPRT *xprt = svc_rpcrdma_create(NULL, 20049, NULL);
     svc_reg(xprt, PROG, VERS, prog_1, NULL);
     svc_rpcrdma_set(xprt, PROG, VERS);     // rpcbind, so that clients find the port
     svc_run();

   AUTH_NONE and AUTH_SYS work as over TCP. A handle of a client belongs to one thread at a time, like libtirpc's; as
   many handles as wanted. A service may be run by several threads; each Call is then dispatched once. Nothing made here
   may be used in a forked child. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct __rpc_client;  /* CLIENT */
struct __rpc_svcxprt; /* SVCXPRT */

/* Bulk data: the one opaque<> of a procedure's arguments or results that travels in a chunk of its own, with nothing of
   variable length in front of it. A client that names results needs a server that names the same, or these Calls fail;
   without any, long messages travel whole. */
struct rpcrdma_bulk {
  uint32_t prog, vers, proc;
  uint32_t in_results; /* 0: it is in the arguments */
  uint32_t offset;     /* octets of XDR from the beginning of that side to its count word, a multiple of 4 */
  uint32_t max_bytes;  /* of results: most data; 0: 1 MiB */
  uint32_t rest_bytes; /* of results: most octets beside the data; 0: 256 */
  uint32_t in_union;   /* not 0: it is there only when the word at arm_offset is arm_value */
  uint32_t arm_offset;
  uint32_t arm_value;
  uint32_t element_bytes; /* of an array<>: octets of one element in XDR, a multiple of 4; 0: it is an opaque<> */
};

/* What may be said; 0 or NULL is the default. Set `size` to sizeof(struct rpcrdma_options): no more of it is looked at.
 */
struct rpcrdma_options {
  size_t size;
  uint32_t credits;                /* Calls outstanding at a time, 1 to 200; 64 */
  uint32_t inline_bytes;           /* of the largest message without chunks: 1024 to 262144 in steps of 1024; 4096 */
  uint32_t max_message_bytes;      /* of the longest Call or Reply; 1 MiB and 64 KiB */
  uint32_t timeout_ms;             /* for finding and connecting the server; 10000 */
  const struct rpcrdma_bulk* bulk; /* bulk_count of them, copied */
  uint32_t bulk_count;
  uint32_t once;              /* client, not 0: what is outstanding fails with the connection, and is not sent again */
  const char* rpcbind_socket; /* "/run/rpcbind.sock"; copied */
  uint32_t no_crc;            /* not 0: no CRC of MPA, where the peer wants none either */
};

/* Calls that version of the program. `port` 0: that which the rpcbind of `host` knows for it under rdma or rdma6. NULL:
   rpc_createerr says why. clnt_destroy() ends it. A connection that is lost is made again, and what was outstanding is
   sent once more with the same xid, within the time of clnt_call(). As over TCP a time of 0 makes clnt_call() return
   when the Call was sent, with RPC_SUCCESS where xdr_results is NULL (batching), else RPC_TIMEDOUT. clnt_control()
   refuses CLGET_FD, and CLGET_SERVER_ADDR where the server has no IPv4 address: CLGET_SVC_ADDR tells that. */
struct __rpc_client* clnt_rpcrdma_create(const char* host, uint32_t prog, uint32_t vers, uint16_t port,
                                         const struct rpcrdma_options* options);

/* Listens at `port`, 0: any free one; xp_port tells. `host`: the address to listen at, NULL: all of IPv4. NULL: errno
   says why. It is registered with libtirpc, and svc_run() serves it: xp_fd is readable when a Call waits. svc_destroy()
   ends it. A Call that is sent again within five minutes gets the answer it has had and is not executed a second time,
   unless the answer had more than 256 KiB, or was pushed out: of a client's address the last 256 are kept, 1 MiB at
   most. A Call that its dispatch routine leaves without an answer gets SYSTEM_ERR when it returns, which nobody reads
   of a batched one. svc_getrpccaller() tells the client of the Call that was taken last, with port 0 where that is not
   known. */
struct __rpc_svcxprt* svc_rpcrdma_create(const char* host, uint16_t port, const struct rpcrdma_options* options);

/* Tells rpcbind of this host that the program is served there, under rdma or rdma6; in place of who said so before, if
   it was the same user. 1, or 0: errno says why. svc_rpcrdma_unset() takes it back, as svc_destroy() does. */
int svc_rpcrdma_set(struct __rpc_svcxprt* xprt, uint32_t prog, uint32_t vers);
int svc_rpcrdma_unset(struct __rpc_svcxprt* xprt, uint32_t prog, uint32_t vers);

#ifdef __cplusplus
}
#endif
