// A peer that can do anything: the test writes its octets by hand and reads what one stream::Connection answers.
#pragma once

#include "tests/support/endpoint.h"
#include "tests/support/segments.h"

namespace iwarp::test {

struct RawPeerOptions {
  bool crc = true;
  bool markers = false;  // in both directions
  bool peer_to_peer = false;
  bool we_initiate = false;    // the connection under test is the Initiator
  bool finish_startup = true;  // false: its Reply has not left yet, or the peer's (RawPeer::reply) not arrived
  std::uint16_t ird = 8, ord = 8;
  stream::Options stream{};
  std::size_t scratch_bytes = 64 * 1024;
  rdmap::ReceiveSource* shared = nullptr;  // where the connection under test takes its Receives
};

class RawPeer {
 public:
  // Takes the connection under test through MPA startup, or to its last step.
  explicit RawPeer(const RawPeerOptions& options = {});

  Endpoint end;
  TimePoint now{std::chrono::seconds(1000)};
  bool crc;
  Bytes reply;  // the MPA Reply of this startup

  // Octets as they are; FPDUs around ULPDUs. `chunk`: longest run per read.
  void feed(const Bytes& bytes, std::size_t chunk = ~std::size_t{0});
  void feed_ulpdu(const Bytes& ulpdu, std::size_t chunk = ~std::size_t{0}) { feed(framed(ulpdu), chunk); }
  // The next FPDU to feed.
  [[nodiscard]] Bytes framed(const Bytes& ulpdu) const {
    return markers_ ? marked_fpdu(ulpdu, fed_, crc) : fpdu(ulpdu, crc);
  }
  // All that the connection wants to send is taken, then taken apart: the ULPDUs of all FPDUs since the last call.
  [[nodiscard]] std::vector<Bytes> ulpdus();
  // Takes at most n octets, as a peer with a small window does.
  std::size_t drain(std::size_t n);
  // The only ULPDU, which must be a Terminate: its body in hex. "" and a failure if it is not so.
  [[nodiscard]] std::string terminate();
  // Time goes on to the next deadline.
  void expire();
  [[nodiscard]] stream::LinkAction link_action() { return end.conn().link_action(); }

 private:
  bool markers_;
  std::uint64_t fed_ = 0;
  Bytes out_;
  mpa::FpduDecoder decoder_;
};

}  // namespace iwarp::test
