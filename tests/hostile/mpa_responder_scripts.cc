// Requests that no responder may take, and odd ones that it must.
#include <chrono>
#include <thread>

#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using test::octets;

Reaction after(Target& target, const Bytes& octets_sent, Flavour flavour = Flavour::kDefault) {
  RawTcp tcp = target.dial(flavour);
  (void)tcp.send(octets_sent);
  return startup_verdict(target, tcp);
}

// The Request is taken and the connection works.
Reaction served(Target& target, const Bytes& request, const mpa::StartupFrame& meaning,
                Flavour flavour = Flavour::kDefault) {
  RawTcp tcp = target.dial(flavour);
  (void)tcp.send(request);
  try {
    Peer peer = finish_opening(target, std::move(tcp), meaning);
    return verdict(peer);
  } catch (const Refused& refused) {
    return refused.reaction;
  }
}
Reaction served(Target& target, const mpa::StartupFrame& request) {
  return served(target, octets(request), request);
}

Bytes request() {
  return octets(polite_request());
}

Reaction cut_short(Target& target) {
  const Bytes data = pattern(20);
  mpa::StartupFrame f = polite_request();
  f.private_data = data;
  Bytes whole = octets(f);
  whole.pop_back();
  RawTcp tcp = target.dial(Flavour::kDefault);
  (void)tcp.send(whole);
  tcp.shutdown_write();
  return startup_verdict(target, tcp);
}

// An octet now and then: each comes in time, the whole does not.
Reaction trickle(Target& target) {
  RawTcp tcp = target.dial(Flavour::kImpatient);
  const Bytes data = pattern(200);
  mpa::StartupFrame f = polite_request();
  f.private_data = data;
  const Bytes whole = octets(f);
  for (const std::byte b : whole) {
    if (target.meanwhile) target.meanwhile();
    if (!tcp.send(ConstBytes{&b, 1})) return kClose;
    std::this_thread::sleep_for(target.patience() / whole.size());
  }
  return startup_verdict(target, tcp);
}

Reaction no_first_fpdu(Target& target) {
  RawTcp tcp = target.dial(Flavour::kImpatient);
  (void)tcp.send(request());
  if (!test::read_frame(tcp, true).complete) return "no Reply";
  Peer peer(target, std::move(tcp), true);
  return peer.ending(peer.hear(static_cast<int>(target.patience().count()))).value_or("spoke before the first FPDU");
}

Reaction private_data_512(Target& target) {
  const Bytes data = pattern(508);
  mpa::StartupFrame f = polite_request();
  f.private_data = data;
  return served(target, f);
}

mpa::StartupFrame with(mpa::EnhancedData data) {
  mpa::StartupFrame f = polite_request();
  f.enhanced_data = data;
  return f;
}

constexpr mpa::EnhancedData kSendRtrOnly = {.peer_to_peer = true, .rtr_send = true, .ird = 8, .ord = 8};

const Script kScripts[] = {
    {"bad_request_key",
     [](Target& t) {
       return after(t, altered(request(), {{15, 'f'}}));
     }},
    {"reply_key_in_request", [](Target& t) { return after(t, octets(polite_reply())); }},
    {"not_mpa_at_all", [](Target& t) { return after(t, hex("47455420 2f204854 54502f31 2e310d0a 0d0a")); }},
    {"fpdu_without_startup",
     [](Target& t) { return after(t, test::fpdu(test::write_segment(Stag{1}, 0, pattern(16)), true)); }},
    {"revision_3_request",
     [](Target& t) {
       return after(t, altered(request(), {{17, 3}}));
     }},
    {"revision_0_request",
     [](Target& t) {
       return after(t, altered(request(), {{16, 0xC0}, {17, 0}}));
     }},
    {"revision_0_request_without_crc",
     [](Target& t) {
       return after(t, altered(request(), {{16, 0x80}, {17, 0}}));
     }},
    {"private_data_513",
     [](Target& t) {
       return after(t, altered(request(), {{18, 2}, {19, 1}}));
     }},
    {"private_data_512", private_data_512},
    {"private_data_cut_short", cut_short},
    {"octets_behind_request", [](Target& t) { return after(t, request() | Bytes(4)); }},
    {"fpdu_before_reply",
     [](Target& t) { return after(t, request() | test::fpdu(test::write_segment(Stag{1}, 0, {}), true)); }},
    {"no_request",
     [](Target& t) {
       RawTcp tcp = t.dial(Flavour::kImpatient);
       return startup_verdict(t, tcp);
     }},
    {"trickled_request", trickle},
    {"no_first_fpdu", no_first_fpdu},
    {"markers_wanted",
     [](Target& t) {
       mpa::StartupFrame f = polite_request();
       f.markers = true;
       return served(t, f);
     }},
    {"reserved_bits_in_request",
     [](Target& t) {
       return served(t, altered(request(), {{16, 0x5F}}), polite_request());
     }},
    {"rejecting_request",
     [](Target& t) {
       return served(t, altered(request(), {{16, 0x70}}), polite_request());
     }},
    {"enhanced_bit_in_revision_1",
     [](Target& t) {
       mpa::StartupFrame meaning;
       meaning.crc = true;
       meaning.revision = 1;
       return served(t, altered(request(), {{17, 1}}), meaning);
     }},
    {"enhanced_without_data",
     [](Target& t) {
       return after(t, altered(request(), {{19, 3}}));
     }},
    {"enhanced_to_revision_1_responder", [](Target& t) { return after(t, request(), Flavour::kRevision1); }},
    {"crc_not_wanted",
     [](Target& t) {
       mpa::StartupFrame f = polite_request();
       f.crc = false;
       return served(t, f);
     }},
    {"flags_without_peer_to_peer",
     [](Target& t) {
       return served(t, with({.rtr_send = true, .rtr_write = true, .rtr_read = true, .ird = 8, .ord = 8}));
     }},
    {"no_rtr_form_offered", [](Target& t) { return served(t, with({.peer_to_peer = true, .ird = 8, .ord = 8})); }},
    {"only_send_rtr_offered", [](Target& t) { return served(t, with(kSendRtrOnly)); }},
};

}  // namespace

std::span<const Script> mpa_responder_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
