#include "xdr_oracle2.h"

#include "rpcrdma2.h"

_Static_assert(sizeof(rpcrdma2_xprt_hdr) <= sizeof(oracle_header2), "room for a header");

bool_t oracle_code_header2(XDR* xdrs, oracle_header2* value) {
  return xdr_rpcrdma2_xprt_hdr(xdrs, (rpcrdma2_xprt_hdr*)(void*)value);
}
