// The rpcgen side of the differential tests, in C because generated code is not C++. Encodings come from "generating
// decoders": the XDR decoder of a type is run on a stream of small random words, and what it understood is encoded
// again, so every generated value is valid by rpcgen's lights.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum oracle_type {
  ORACLE_HEADER,          // rdma_msg of RFC 8166
  ORACLE_HEADER2,         // rpcrdma2_xprt_hdr of version 2
  ORACLE_HEADER2005,      // rdma_msg of the draft of 2005
  ORACLE_CONFIG_REQUEST,  // config_rdma_req of it
  ORACLE_CONFIG_REPLY,    // config_rdma_reply
  ORACLE_ARGOP,           // nfs_argop4: operation number and arguments
  ORACLE_RESOP,           // nfs_resop4: operation number, status, result
  ORACLE_V3_READ_RESULT,
  ORACLE_V3_READLINK_RESULT,
  ORACLE_V3_WRITE_ARGS,
  ORACLE_V3_SYMLINK_ARGS
};

// Encodes a random value whose first words are `forced`. Returns the octets written to `out`, 0 if this seed makes no
// valid value.
size_t oracle_generate(enum oracle_type type, uint32_t seed, const uint32_t* forced, size_t forced_words, uint8_t* out,
                       size_t capacity);

// Decodes a value at the start of `in` and encodes it again. Returns the octets written, 0 if rpcgen's decoder refuses
// it; *used is what it consumed.
size_t oracle_recode(enum oracle_type type, const uint8_t* in, size_t size, uint8_t* out, size_t capacity,
                     size_t* used);

// Whole messages of CONFIG_RDMA, as libtirpc and rpcgen make them of these three words. Return the octets written.
size_t oracle_config_call(uint32_t xid, const uint32_t request[3], uint8_t* out, size_t capacity);
size_t oracle_config_reply(uint32_t xid, const uint32_t answer[3], uint8_t* out, size_t capacity);

// Back channel's request, response and cached response size of an encoded CREATE_SESSION operation. Returns 0 if it is
// none.
int oracle_back_channel(const uint8_t* in, size_t size, uint32_t sizes[3]);

#ifdef __cplusplus
}
#endif
