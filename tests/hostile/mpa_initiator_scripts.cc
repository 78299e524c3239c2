// Replies that no initiator may take, and odd ones that it must.
#include <chrono>
#include <thread>

#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using test::octets;

// Takes the Request; what is sent then is up to the script.
Peer caught(Target& target, Flavour flavour = Flavour::kDefault, MarkerUse markers = {}) {
  RawTcp tcp = target.hook(flavour);
  if (!test::read_frame(tcp, false).complete) throw std::runtime_error("the victim sent no Request");
  return Peer(target, std::move(tcp), true, {}, markers);
}

// How the victim ends the connection, FPDUs being possible.
Reaction ended(Peer& peer) {
  return peer.ending(peer.hear_message()).value_or("a message");
}

Reaction after(Target& target, const Bytes& reply, Flavour flavour = Flavour::kDefault) {
  Peer peer = caught(target, flavour);
  peer.raw(reply);
  return ended(peer);
}

Reaction served(Target& target, const Bytes& reply, Flavour flavour = Flavour::kDefault) {
  Peer peer = caught(target, flavour);
  peer.raw(reply);
  return verdict(peer);
}

Bytes reply() {
  return octets(polite_reply());
}
Bytes reply(mpa::EnhancedData data) {
  mpa::StartupFrame f = polite_reply();
  f.enhanced_data = data;
  return octets(f);
}
Bytes plain_reply(std::uint8_t revision) {
  mpa::StartupFrame f;
  f.is_reply = f.crc = true;
  f.revision = revision;
  return octets(f);
}

Reaction cut_short(Target& target) {
  Peer peer = caught(target);
  peer.raw(altered(reply(), {{19, 20}}));
  peer.tcp.shutdown_write();
  return ended(peer);
}

Reaction trickle(Target& target) {
  Peer peer = caught(target, Flavour::kImpatient);
  const Bytes whole = altered(reply(), {{19, 255}}) | Bytes(251);
  for (const std::byte b : whole) {
    if (target.meanwhile) target.meanwhile();
    if (!peer.tcp.send(ConstBytes{&b, 1})) return kClose;
    std::this_thread::sleep_for(target.patience() / whole.size());
  }
  return ended(peer);
}

// More Reads at a time than the victim's Request said it can serve.
Reaction overrun(Target& target) {
  Peer peer = lure(target);
  peer.raw(read_burst(peer, 256));
  return peer.ending(peer.hear_message()).value_or("a message");
}

const Script kScripts[] = {
    {"bad_reply_key",
     [](Target& t) {
       return after(t, altered(reply(), {{15, 'f'}}));
     }},
    {"request_key_in_reply", [](Target& t) { return after(t, octets(polite_request())); }},
    {"not_mpa_at_all", [](Target& t) { return after(t, hex("48545450 2f312e31 20343030 20426164 0d0a")); }},
    {"fpdu_before_reply",
     [](Target& t) { return after(t, test::fpdu(test::write_segment(Stag{1}, 0, pattern(16)), true)); }},
    {"revision_3_reply",
     [](Target& t) {
       return after(t, altered(reply(), {{17, 3}}));
     }},
    {"revision_0_reply",
     [](Target& t) {
       return after(t, altered(reply(), {{17, 0}}));
     }},
    {"revision_0_reply_without_crc",
     [](Target& t) {
       return after(t, altered(reply(), {{16, 0x80}, {17, 0}}));
     }},
    {"revision_2_to_revision_1", [](Target& t) { return after(t, reply(), Flavour::kRevision1); }},
    {"private_data_513",
     [](Target& t) {
       return after(t, altered(reply(), {{18, 2}, {19, 1}}));
     }},
    {"private_data_cut_short", cut_short},
    {"no_reply",
     [](Target& t) {
       Peer peer = caught(t, Flavour::kImpatient);
       return ended(peer);
     }},
    {"trickled_reply", trickle},
    {"markers_wanted",
     [](Target& t) {
       Peer peer = caught(t, Flavour::kDefault, {.heard = true});
       peer.raw(altered(reply(), {{16, 0xD0}}));
       return verdict(peer);
     }},
    {"reserved_bits_in_reply",
     [](Target& t) {
       return served(t, altered(reply(), {{16, 0x5F}}));
     }},
    {"crc_not_wanted",
     [](Target& t) {
       return served(t, altered(reply(), {{16, 0x10}}));
     }},
    {"enhanced_without_data",
     [](Target& t) {
       return after(t, altered(reply(), {{19, 3}}));
     }},
    {"unenhanced_reply", [](Target& t) { return after(t, plain_reply(2)); }},
    {"revision_1_reply", [](Target& t) { return after(t, plain_reply(1)); }},
    {"ord_above_every_ird",
     [](Target& t) { return after(t, reply({.peer_to_peer = true, .rtr_write = true, .ird = 8, .ord = 0x3FFE})); }},
    {"no_peer_to_peer_in_reply", [](Target& t) { return after(t, reply({.ird = 8, .ord = 8})); }},
    {"unasked_peer_to_peer", [](Target& t) { return after(t, reply(), Flavour::kNoPeer2Peer); }},
    {"flags_without_peer_to_peer",
     [](Target& t) {
       return served(t, reply({.rtr_send = true, .rtr_write = true, .rtr_read = true, .ird = 8, .ord = 8}),
                     Flavour::kNoPeer2Peer);
     }},
    {"only_send_rtr_named",
     [](Target& t) { return after(t, reply({.peer_to_peer = true, .rtr_send = true, .ird = 8, .ord = 8})); }},
    {"no_rtr_named", [](Target& t) { return after(t, reply({.peer_to_peer = true, .ird = 8, .ord = 8})); }},
    {"low_ird_in_reply",
     [](Target& t) { return served(t, reply({.peer_to_peer = true, .rtr_write = true, .ird = 1, .ord = 8})); }},
    {"responder_speaks_first",
     [](Target& t) {
       Peer peer = caught(t);
       const Bytes first = test::fpdu(test::send_segment(info(), {.msn = peer.take_msn()}), true);
       peer.raw(reply() | first);
       return verdict(peer, true);
     }},
    {"more_reads_than_ird", overrun},
};

}  // namespace

std::span<const Script> mpa_initiator_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
