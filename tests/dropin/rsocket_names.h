// rsocket.h with the names that the library's own functions have: librdmacm.so.1 jumps from NAME to iwarp_NAME. To be
// included before any other header of rdma-core.
#pragma once

#define raccept iwarp_raccept
#define rbind iwarp_rbind
#define rclose iwarp_rclose
#define rconnect iwarp_rconnect
#define rfcntl iwarp_rfcntl
#define rgetpeername iwarp_rgetpeername
#define rgetsockname iwarp_rgetsockname
#define rgetsockopt iwarp_rgetsockopt
#define riomap iwarp_riomap
#define riounmap iwarp_riounmap
#define riowrite iwarp_riowrite
#define rlisten iwarp_rlisten
#define rpoll iwarp_rpoll
#define rread iwarp_rread
#define rreadv iwarp_rreadv
#define rrecv iwarp_rrecv
#define rrecvfrom iwarp_rrecvfrom
#define rrecvmsg iwarp_rrecvmsg
#define rselect iwarp_rselect
#define rsend iwarp_rsend
#define rsendmsg iwarp_rsendmsg
#define rsendto iwarp_rsendto
#define rsetsockopt iwarp_rsetsockopt
#define rshutdown iwarp_rshutdown
#define rsocket iwarp_rsocket
#define rwrite iwarp_rwrite
#define rwritev iwarp_rwritev

#include <rdma/rsocket.h>
