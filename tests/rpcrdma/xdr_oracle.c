#include "xdr_oracle.h"

#include <rpc/rpc.h>
#include <string.h>

#include "nfs3_items.h"
#include "nfs42.h"
#include "rpcrdma1.h"
#include "xdr_oracle2.h"
#include "xdr_oracle2005.h"

typedef union {
  rdma_msg header;
  oracle_header2 header2;
  oracle_value2005 value2005;
  nfs_argop4 argop;
  nfs_resop4 resop;
  t3_read_result read;
  t3_readlink_result readlink;
  t3_write_arguments write;
  t3_symlink_arguments symlink;
} any_value;

static bool_t code(enum oracle_type type, XDR* xdrs, any_value* v) {
  switch (type) {
    case ORACLE_HEADER:
      return xdr_rdma_msg(xdrs, &v->header);
    case ORACLE_HEADER2:
      return oracle_code_header2(xdrs, &v->header2);
    case ORACLE_HEADER2005:
      return oracle_code_header2005(xdrs, &v->value2005);
    case ORACLE_CONFIG_REQUEST:
      return oracle_code_config_request(xdrs, &v->value2005);
    case ORACLE_CONFIG_REPLY:
      return oracle_code_config_reply(xdrs, &v->value2005);
    case ORACLE_ARGOP:
      return xdr_nfs_argop4(xdrs, &v->argop);
    case ORACLE_RESOP:
      return xdr_nfs_resop4(xdrs, &v->resop);
    case ORACLE_V3_READ_RESULT:
      return xdr_t3_read_result(xdrs, &v->read);
    case ORACLE_V3_READLINK_RESULT:
      return xdr_t3_readlink_result(xdrs, &v->readlink);
    case ORACLE_V3_WRITE_ARGS:
      return xdr_t3_write_arguments(xdrs, &v->write);
    case ORACLE_V3_SYMLINK_ARGS:
      return xdr_t3_symlink_arguments(xdrs, &v->symlink);
  }
  return FALSE;
}

static void release(enum oracle_type type, any_value* v) {
  XDR xdrs;
  memset(&xdrs, 0, sizeof xdrs);
  xdrs.x_op = XDR_FREE;
  code(type, &xdrs, v);
}

static size_t encode(enum oracle_type type, any_value* v, uint8_t* out, size_t capacity) {
  XDR xdrs;
  size_t written = 0;
  xdrmem_create(&xdrs, (char*)out, (u_int)capacity, XDR_ENCODE);
  if (code(type, &xdrs, v)) written = xdr_getpos(&xdrs);
  xdr_destroy(&xdrs);
  return written;
}

// --- the stream of random words

typedef struct {
  uint32_t state;
  const uint32_t* forced;
  size_t forced_left;
  size_t words_left;  // ends runaway lists
} generator;

static uint32_t next_random(generator* g) {
  g->state = g->state * 1664525u + 1013904223u;
  return g->state >> 8;
}

static bool_t generate_word(XDR* xdrs, long* out) {
  static const uint8_t kWeighted[] = {0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 9};
  generator* g = (generator*)xdrs->x_private;
  if (g->forced_left > 0) {
    --g->forced_left;
    *out = (long)*g->forced++;
    return TRUE;
  }
  if (g->words_left-- == 0) return FALSE;
  *out = kWeighted[next_random(g) % sizeof kWeighted];
  return TRUE;
}

static bool_t generate_bytes(XDR* xdrs, char* out, u_int size) {
  for (u_int i = 0; i < size; ++i)
    out[i] = (char)(1 + next_random((generator*)xdrs->x_private) % 255);  // no NUL: strings
  return TRUE;
}

static bool_t refuse_word(XDR* xdrs, const long* in) {
  return xdrs == NULL && in == NULL;
}
static bool_t refuse_bytes(XDR* xdrs, const char* in, u_int size) {
  return xdrs == NULL && in == NULL && size == 0;
}
static u_int no_position(XDR* xdrs) {
  return xdrs == NULL;
}
static bool_t no_seek(XDR* xdrs, u_int at) {
  return xdrs == NULL && at == 0;
}
static int32_t* no_inline(XDR* xdrs, u_int size) {
  (void)xdrs;
  (void)size;
  return NULL;
}
static void nothing(XDR* xdrs) {
  (void)xdrs;
}
static bool_t no_control(XDR* xdrs, int request, void* info) {
  return xdrs == NULL && request == 0 && info == NULL;
}

size_t oracle_generate(enum oracle_type type, uint32_t seed, const uint32_t* forced, size_t forced_words, uint8_t* out,
                       size_t capacity) {
  static const struct xdr_ops kOps = {generate_word, refuse_word, generate_bytes, refuse_bytes, no_position,
                                      no_seek,       no_inline,   nothing,        no_control};
  generator g = {seed * 2654435761u + 1, forced, forced_words, 400};
  XDR xdrs;
  any_value v;
  size_t written = 0;
  memset(&xdrs, 0, sizeof xdrs);
  memset(&v, 0, sizeof v);
  xdrs.x_op = XDR_DECODE;
  xdrs.x_ops = &kOps;
  xdrs.x_private = &g;
  if (code(type, &xdrs, &v)) written = encode(type, &v, out, capacity);
  release(type, &v);  // also what failed half-way, as svc_freeargs() does
  return written;
}

size_t oracle_recode(enum oracle_type type, const uint8_t* in, size_t size, uint8_t* out, size_t capacity,
                     size_t* used) {
  XDR xdrs;
  any_value v;
  size_t written = 0;
  memset(&v, 0, sizeof v);
  xdrmem_create(&xdrs, (char*)(uintptr_t)in, (u_int)size, XDR_DECODE);
  if (code(type, &xdrs, &v)) {
    *used = xdr_getpos(&xdrs);
    written = encode(type, &v, out, capacity);
  }
  release(type, &v);
  xdr_destroy(&xdrs);
  return written;
}

int oracle_back_channel(const uint8_t* in, size_t size, uint32_t sizes[3]) {
  XDR xdrs;
  any_value v;
  const channel_attrs4* attrs = NULL;
  memset(&v, 0, sizeof v);
  xdrmem_create(&xdrs, (char*)(uintptr_t)in, (u_int)size, XDR_DECODE);
  const bool_t fine = code(ORACLE_ARGOP, &xdrs, &v);
  if (fine && v.argop.argop == OP_CREATE_SESSION) {
    attrs = &v.argop.nfs_argop4_u.opcreate_session.csa_back_chan_attrs;
  }
  if (attrs != NULL) {
    sizes[0] = attrs->ca_maxrequestsize;
    sizes[1] = attrs->ca_maxresponsesize;
    sizes[2] = attrs->ca_maxresponsesize_cached;
  }
  release(ORACLE_ARGOP, &v);
  xdr_destroy(&xdrs);
  return attrs != NULL;
}
