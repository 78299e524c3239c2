// The rpcgen side of the draft of 2005 (rpcrdma2005.x), in a file of its own: its names are those of version 1.
#pragma once

#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>

// Room for a decoded value.
typedef struct {
  uint64_t room[32];
} oracle_value2005;

bool_t oracle_code_header2005(XDR* xdrs, oracle_value2005* value);
bool_t oracle_code_config_request(XDR* xdrs, oracle_value2005* value);
bool_t oracle_code_config_reply(XDR* xdrs, oracle_value2005* value);
