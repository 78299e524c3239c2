// What rpcgen makes of the draft of 2005 has names of version 1: here they get others.
#include "xdr_oracle2005.h"

#include <string.h>

#include "xdr_oracle.h"

#define xdr_uint32 xdr_uint32_of_2005
#define xdr_uint64 xdr_uint64_of_2005
#define xdr_xdr_rdma_segment xdr_xdr_rdma_segment_of_2005
#define xdr_xdr_read_chunk xdr_xdr_read_chunk_of_2005
#define xdr_xdr_read_list xdr_xdr_read_list_of_2005
#define xdr_xdr_write_chunk xdr_xdr_write_chunk_of_2005
#define xdr_xdr_write_list xdr_xdr_write_list_of_2005
#define xdr_rdma_proc xdr_rdma_proc_of_2005
#define xdr_rpc_rdma_header xdr_rpc_rdma_header_of_2005
#define xdr_rpc_rdma_header_nomsg xdr_rpc_rdma_header_nomsg_of_2005
#define xdr_rpc_rdma_header_padded xdr_rpc_rdma_header_padded_of_2005
#define xdr_rpc_rdma_errcode xdr_rpc_rdma_errcode_of_2005
#define xdr_rpc_rdma_errvers xdr_rpc_rdma_errvers_of_2005
#define xdr_rpc_rdma_error xdr_rpc_rdma_error_of_2005
#define xdr_rdma_body xdr_rdma_body_of_2005
#define xdr_rdma_msg xdr_rdma_msg_of_2005

#include "rpcrdma2005_xdr.c"

_Static_assert(sizeof(rdma_msg) <= sizeof(oracle_value2005), "room for a header");

bool_t oracle_code_header2005(XDR* xdrs, oracle_value2005* value) {
  return xdr_rdma_msg(xdrs, (rdma_msg*)(void*)value);
}

bool_t oracle_code_config_request(XDR* xdrs, oracle_value2005* value) {
  return xdr_config_rdma_req(xdrs, (config_rdma_req*)(void*)value);
}

bool_t oracle_code_config_reply(XDR* xdrs, oracle_value2005* value) {
  return xdr_config_rdma_reply(xdrs, (config_rdma_reply*)(void*)value);
}

size_t oracle_config_call(uint32_t xid, const uint32_t request[3], uint8_t* out, size_t capacity) {
  XDR xdrs;
  size_t written = 0;
  struct rpc_msg head;
  config_rdma_req arguments = {request[0], request[1], request[2]};
  memset(&head, 0, sizeof head);
  head.rm_xid = xid;
  head.rm_direction = CALL;
  head.rm_call.cb_rpcvers = RPC_MSG_VERSION;
  head.rm_call.cb_prog = CONFIG_RDMA_PROG;
  head.rm_call.cb_vers = VERS1;
  head.rm_call.cb_proc = CONF_RDMA;
  head.rm_call.cb_cred = head.rm_call.cb_verf = _null_auth;
  xdrmem_create(&xdrs, (char*)out, (u_int)capacity, XDR_ENCODE);
  if (xdr_callmsg(&xdrs, &head) && xdr_config_rdma_req(&xdrs, &arguments)) written = xdr_getpos(&xdrs);
  xdr_destroy(&xdrs);
  return written;
}

size_t oracle_config_reply(uint32_t xid, const uint32_t answer[3], uint8_t* out, size_t capacity) {
  XDR xdrs;
  size_t written = 0;
  struct rpc_msg head;
  config_rdma_reply results = {answer[0], answer[1], answer[2]};
  memset(&head, 0, sizeof head);
  head.rm_xid = xid;
  head.rm_direction = REPLY;
  head.rm_reply.rp_stat = MSG_ACCEPTED;
  head.acpted_rply.ar_verf = _null_auth;
  head.acpted_rply.ar_stat = SUCCESS;
  head.acpted_rply.ar_results.where = (char*)&results;
  head.acpted_rply.ar_results.proc = (xdrproc_t)xdr_config_rdma_reply;
  xdrmem_create(&xdrs, (char*)out, (u_int)capacity, XDR_ENCODE);
  if (xdr_replymsg(&xdrs, &head)) written = xdr_getpos(&xdrs);
  xdr_destroy(&xdrs);
  return written;
}
