// What rpcgen makes of version 2 has names of version 1, so it has a file of its own.
#pragma once

#include <rpc/rpc.h>

// Room for a decoded rpcrdma2_xprt_hdr.
typedef struct {
  uint64_t room[32];
} oracle_header2;

bool_t oracle_code_header2(XDR* xdrs, oracle_header2* value);
