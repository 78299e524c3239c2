// pNFS (RFC 8881 s12, s18.35): a server's answer to EXCHANGE_ID says whether it hands out layouts, and attributes of a
// file system say which. Linux uses layouts where the attributes name some, whatever the flags say, so both are hidden.
// Clients with layouts send their data to addresses that the server names, past whatever stands between them and the
// server. Bounded walkers over untrusted XDR that allocate nothing. Messages under RPCSEC_GSS integrity or privacy are
// left alone.
#pragma once

#include "iwarp/base/bytes.h"

namespace iwarp::rpcrdma {

// Whether `call` is a whole NFSv4.1 or 4.2 COMPOUND with an EXCHANGE_ID that can be found.
[[nodiscard]] bool has_exchange_id(ConstBytes call);

// Takes the attributes that tell of layouts (fs_layout_type, layout_type, layout_blksize, layout_alignment,
// mdsthreshold) out of what the GETATTR and READDIR operations of such a COMPOUND ask for, in place; its length stays.
// A server answers without what it was not asked for, and clients take that for a file system without layouts. Whether
// some were asked for.
bool hide_layout_attributes(MutBytes call);

// Takes EXCHGID4_FLAG_USE_PNFS_MDS and EXCHGID4_FLAG_USE_PNFS_DS out of every EXCHANGE_ID result of `reply`, in place,
// and puts EXCHGID4_FLAG_USE_NON_PNFS in their place. `reply` answers a Call with has_exchange_id(). Whether it had
// one.
bool hide_layouts(MutBytes reply);

}  // namespace iwarp::rpcrdma
