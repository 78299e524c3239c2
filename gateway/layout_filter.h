// --pnfs off: nobody asks for layouts, and no EXCHANGE_ID is told of them. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "iwarp/base/bytes.h"

namespace iwarp::gateway {

class LayoutFilter {
 public:
  // Of Calls with EXCHANGE_ID outstanding at a time; beyond it the oldest is forgotten and its Reply passes unchanged.
  // A client sends one at a time.
  static constexpr std::size_t kMaxCalls = 128;

  // `on`: otherwise nothing is looked at.
  explicit LayoutFilter(bool on) : on_(on) {}

  // A Call on its way to the server, changed in place: see rpcrdma::hide_layout_attributes(). May be told twice.
  void on_call(MutBytes call);
  // A Reply on its way to the client, changed in place. Whether pNFS flags were cleared.
  bool on_reply(MutBytes reply);

 private:
  bool on_;
  std::deque<std::uint32_t> xids_;  // oldest first
};

}  // namespace iwarp::gateway
