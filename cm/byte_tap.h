// ByteTap: sees the octets of one connection as TCP takes and gives them, startup frames included: for traces and
// captures. An Engine that was given a TapMaker asks it for a tap for each of its connections.
//
// Calls come in the order of the stream, one at a time, from whichever thread drives the connection, and with its lock
// held: a tap must not call into cm or verbs, and it must not wait. Received octets are shown before anything looks at
// them, even those that went straight to the application's memory. Read Response payload that is sent without CRC may
// change between the system call and the tap (RFC 5040 s5.5).
#pragma once

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/time.h"
#include "iwarp/stream/connection.h"

namespace iwarp::cm {

class ByteTap {
 public:
  // kSilence is only received: TCP gave up on the peer, and no packet said so.
  using End = stream::TcpEnd;

  // Destroyed when the socket is released.
  virtual ~ByteTap() = default;
  // The pieces are one run of octets and valid during the call.
  virtual void sent(const std::vector<ConstBytes>& pieces, TimePoint now) = 0;
  // Octets that came in, as sent() for those that went out.
  virtual void received(const std::vector<ConstBytes>& pieces, TimePoint now) = 0;
  // This end has ended the stream, and nothing more is sent: FIN or RST.
  virtual void sent_end(End how, TimePoint now) = 0;
  // The other end has, or TCP has given up on it.
  virtual void received_end(End how, TimePoint now) = 0;
};

// The connection that a tap is asked for.
struct TapTarget {
  boost::asio::ip::tcp::endpoint local, remote;  // addresses of this end and of the peer
  bool initiator = false;                        // this end has connected; false: it has accepted
};
// May give null: this connection is not tapped. Thread-safe.
using TapMaker = std::function<std::shared_ptr<ByteTap>(const TapTarget&)>;

// The first n octets of what a gather or scatter list names.
template <class Span>
[[nodiscard]] std::vector<ConstBytes> first_octets(std::span<const Span> spans, std::size_t n) {
  std::vector<ConstBytes> out;
  for (std::size_t i = 0; n > 0 && i < spans.size(); ++i) {
    out.push_back(ConstBytes(spans[i]).first(std::min(n, spans[i].size())));
    n -= out.back().size();
  }
  return out;
}

}  // namespace iwarp::cm
