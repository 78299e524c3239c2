// The RDMA octets of a connection as gateway statistics.
#pragma once

#include "iwarp/cm/description.h"
#include "iwarp/gateway/stats.h"

namespace iwarp::gateway {

// Adds the counters of a connection that is over.
void record_counters(Stats& to, const cm::Counters& c);
// Adds those of one that lives to a snapshot.
void add_counters(Stats::Snapshot& to, const cm::Counters& c);

}  // namespace iwarp::gateway
