// A server that misuses the Write chunk of a READ: other chunks than were offered, lengths that are not true, RDMA
// Writes where there is no chunk, or none any more.
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rpcrdma::Header;
using rpcrdma::Segment;
using samples::Decoded;
using samples::header;

// The victim's READ, before a server that has taken it.
struct Reading {
  explicit Reading(Target& target) : server(target), call(server.next_read()), chunk(segment(call.header)) {}

  static Segment& segment(Header& h) { return h.write_list[0].segments[0]; }
  // The header of a Reply that says so many octets were written.
  [[nodiscard]] Header written(std::uint32_t octets) const {
    Header h = header(call.header.xid, rpcrdma::Proc::kMsg, 1);
    h.write_list = call.header.write_list;
    segment(h).length = octets;
    return h;
  }
  void write(std::uint64_t at, const Bytes& data) {
    server.peer.ulpdu(test::write_segment(chunk.handle, chunk.offset + at, data));
  }
  // The Reply without its data, which are said to be so many octets.
  [[nodiscard]] Bytes without_data(std::uint32_t octets) const {
    return samples::read_reply_head(call.header.xid, octets);
  }
  // How the connection ended, maybe after a Call or two.
  [[nodiscard]] Reaction end() {
    for (int i = 0; i < 4; ++i) {
      if (const auto ended = server.peer.ending(server.peer.hear_message())) return *ended;
    }
    return "served on";
  }

  RpcServer server;
  Decoded call;
  Segment chunk;
};

// In the place of a good Reply with 1000 octets in the chunk comes one whose header `edit` has made.
Reaction edited(Target& target, void (*edit)(Header&)) {
  Reading r(target);
  r.write(0, pattern(1000));
  Header h = r.written(1000);
  edit(h);
  r.server.send(h, r.without_data(1000));
  return r.server.verdict(r.call);
}

// The header says that so many octets were written, the count word that there are so many.
Reaction lengths(Target& target, std::uint32_t written, std::uint32_t counted) {
  Reading r(target);
  r.write(0, pattern(1000));
  r.server.send(r.written(written), r.without_data(counted));
  return r.server.verdict(r.call);
}

const Script kScripts[] = {
    {"write_chunk_grown",
     [](Target& t) {
       Reading r(t);
       const std::uint32_t more = r.chunk.length + 1;
       r.server.send(r.written(more), r.without_data(more));
       return r.server.verdict(r.call);
     }},
    {"write_chunk_of_other_handle",
     [](Target& t) { return edited(t, [](Header& h) { Reading::segment(h).handle = Stag{0x777}; }); }},
    {"write_chunk_elsewhere", [](Target& t) { return edited(t, [](Header& h) { Reading::segment(h).offset += 4; }); }},
    {"write_chunk_with_more_segments",
     [](Target& t) { return edited(t, [](Header& h) { h.write_list[0].segments.push_back(room(4)); }); }},
    {"write_chunk_without_segments",
     [](Target& t) { return edited(t, [](Header& h) { h.write_list[0].segments.clear(); }); }},
    {"write_chunk_twice",
     [](Target& t) { return edited(t, [](Header& h) { h.write_list.push_back(h.write_list[0]); }); }},
    {"write_chunk_as_reply_chunk",
     [](Target& t) {
       return edited(t, [](Header& h) {
         h.proc = rpcrdma::Proc::kNomsg;
         h.reply_chunk = h.write_list[0];
       });
     }},
    {"write_chunk_shorter_than_count", [](Target& t) { return lengths(t, 100, 200); }},
    {"write_chunk_longer_than_count", [](Target& t) { return lengths(t, 200, 100); }},
    {"nothing_was_written",
     [](Target& t) {
       Reading r(t);
       r.server.send(r.written(1000), r.without_data(1000));
       return r.server.verdict(r.call);
     }},
    {"data_in_line_beside_write_chunk",
     [](Target& t) {
       Reading r(t);
       r.server.send(r.written(0), samples::read_reply(r.call.header.xid, pattern(100)));
       return r.server.verdict(r.call);
     }},
    {"write_behind_write_chunk",
     [](Target& t) {
       Reading r(t);
       r.write(r.chunk.length - 2, pattern(4));
       return r.end();
     }},
    {"write_after_the_reply",
     [](Target& t) {
       Reading r(t);
       r.write(0, pattern(1000));
       r.server.send(r.written(1000), r.without_data(1000));
       if (r.server.peer.hear_message().kind != Heard::Kind::kSend) return Reaction("no next Call");
       r.write(0, pattern(4));
       return r.end();
     }},
};

}  // namespace

std::span<const Script> rpc_write_chunk_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
