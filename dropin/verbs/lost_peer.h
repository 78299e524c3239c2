// What becomes of a queue pair of the RoCE presentation whose peer has gone: endpoint::Options::outlive_peer.
#pragma once

#include <chrono>
#include <memory>

#include "iwarp/cm/connection.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::dropin {

// What is sent to a peer that has gone fails so long after that, as InfiniBand tries it again for about this time with
// the attributes that programs set. They rely on it that they end before they hear of what the peer did not need.
inline constexpr std::chrono::seconds kTries{3};

// Gives the peer of `connection` up, kTries after its end. Thread-safe.
void give_up_after_end(const std::shared_ptr<cm::Connection>& connection);

}  // namespace iwarp::dropin
