// FPDUs whose framing, CRC, pad or Markers are wrong, or odd.
#include <algorithm>

#include "iwarp/mpa/crc32c.h"
#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

// A Send that would be good: 16 octets, two of pad behind its 36.
Bytes good(Peer& peer) {
  return test::fpdu(test::send_segment(info(), {.msn = peer.take_msn()}), peer.crc);
}

Bytes crc_of(const Bytes& octets) {
  mpa::Crc32c sum;
  sum.update(octets);
  Bytes out(4);
  sum.write_to(std::span<std::byte, 4>(out));
  return out;
}

Bytes flipped(Bytes octets, std::size_t at) {
  octets.at(at) ^= std::byte{1};
  return octets;
}

Bytes without_crc(Bytes fpdu) {
  fpdu.erase(fpdu.end() - 4, fpdu.end());
  return fpdu;
}

// Sends what `spoil` makes of a good FPDU, then a good one.
Reaction spoilt(Target& target, Bytes (*spoil)(Bytes), const mpa::StartupFrame& request = polite_request(),
                Flavour flavour = Flavour::kDefault) {
  Peer peer = open(target, flavour, request);
  peer.raw(spoil(good(peer)));
  return verdict(peer);
}

mpa::StartupFrame no_crc() {
  mpa::StartupFrame f = polite_request();
  f.crc = false;
  return f;
}

Reaction odd_pad(Target& target) {
  Peer peer = open(target);
  Bytes ulpdu = test::send_segment(info(), {.msn = peer.take_msn()});
  Bytes length(2);
  store_be<std::uint16_t>(length, static_cast<std::uint16_t>(ulpdu.size()));
  const Bytes body = length | ulpdu;
  const Bytes padded = body | Bytes((4 - body.size() % 4) % 4, std::byte{0xA5});
  peer.raw(padded | crc_of(padded));
  return verdict(peer, true);
}

Reaction ends_inside(Target& target) {
  Peer peer = open(target);
  const Bytes whole = good(peer);
  peer.raw(Bytes(whole.begin(), whole.begin() + 20));
  peer.tcp.shutdown_write();
  return peer.ending(peer.hear_message()).value_or("a message");
}

// The CRC in the order of the other fields: most significant octet first.
Bytes big_endian_crc(Bytes f) {
  std::reverse(f.end() - 4, f.end());
  return f;
}
Bytes zero_crc(Bytes f) {
  std::fill(f.end() - 4, f.end(), std::byte{0});
  return f;
}
// Over the ULPDU alone, without the length.
Bytes crc_without_length(Bytes f) {
  const Bytes body(f.begin() + 2, f.end() - 4);
  return without_crc(f) | crc_of(body);
}
// Over the field itself as well, being zero.
Bytes crc_over_itself(Bytes f) {
  return without_crc(f) | crc_of(without_crc(f) | Bytes(4));
}
// CRC-32 of Ethernet, complemented CRC-32C and so on differ from CRC-32C in every octet: one stands for all.
Bytes other_polynomial(Bytes f) {
  std::uint32_t crc = ~0U;
  for (std::size_t i = 0; i + 4 < f.size(); ++i) {
    crc ^= std::to_integer<std::uint32_t>(f[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
  }
  crc = ~crc;
  for (std::size_t i = 0; i < 4; ++i) f[f.size() - 4 + i] = static_cast<std::byte>(crc >> (8 * i) & 0xFF);
  return f;
}
Bytes garbage_crc(Bytes f) {
  std::fill(f.end() - 4, f.end(), std::byte{0xAB});
  return f;
}

// The victim asks for Markers; the next good FPDU has one `before` octets behind its beginning.
Peer near_marker(Target& target, std::size_t before) {
  Peer peer = open(target, Flavour::kAsksForMarkers);
  const Region memory = find_memory(target, peer, Memory::kOpen);
  const std::size_t room = mpa::octets_to_marker(peer.sent_bytes()) - before;
  peer.ulpdu(test::write_segment(memory.stag, memory.to, Bytes(room - mpa::fpdu_bytes(ddp::TaggedHeader::kSize))));
  return peer;
}

Bytes good_marked(Peer& peer) {
  return peer.framed(test::send_segment(info(), {.msn = peer.take_msn()}));
}

// Sends what `spoil` makes of a good FPDU with a Marker there, then good ones.
Reaction spoilt_marker(Target& target, std::size_t before, Bytes (*spoil)(Bytes), bool served = false) {
  Peer peer = near_marker(target, before);
  peer.raw(spoil(good_marked(peer)));
  return verdict(peer, served);
}

// Other octets of a Marker, and the CRC of them.
Bytes marked_with(Bytes f, std::size_t at, const Bytes& octets) {
  std::copy(octets.begin(), octets.end(), f.begin() + static_cast<std::ptrdiff_t>(at));
  return without_crc(f) | crc_of(without_crc(f));
}

// Where there is one inside, it stands behind eight octets.
Bytes without_marker(Bytes f) {
  f.erase(f.begin() + 8, f.begin() + 12);
  return without_crc(f) | crc_of(without_crc(f));
}
Bytes without_marker_before(Bytes f) {
  f.erase(f.begin(), f.begin() + 4);
  return f;
}
Bytes marker_not_in_crc(Bytes f) {
  Bytes others = without_crc(f);
  others.erase(others.begin() + 8, others.begin() + 12);
  return without_crc(f) | crc_of(others);
}
Bytes marker_before_not_in_crc(Bytes f) {
  return without_crc(f) | crc_of(Bytes(f.begin() + 4, f.end() - 4));
}

// The RTR without the Marker that begins Full Operation.
Reaction first_marker_left_out(Target& target) {
  RawTcp tcp = target.dial(Flavour::kAsksForMarkers);
  (void)tcp.send(test::octets(polite_request()));
  if (!test::read_frame(tcp, true).complete) return "no Reply";
  (void)tcp.send(test::fpdu(test::write_segment(Stag{1}, 0, {}), true));
  Peer peer(target, std::move(tcp), true);
  return peer.ending(peer.hear_message()).value_or("a message");
}

// Of the 40 octets of such an FPDU: the Marker comes, then the CRC field.
constexpr std::size_t kBeforeCrc = 36;

const Script kScripts[] = {
    {"crc_wrong", [](Target& t) { return spoilt(t, [](Bytes f) { return flipped(f, f.size() - 1); }); }},
    {"payload_bit_flipped", [](Target& t) { return spoilt(t, [](Bytes f) { return flipped(f, 25); }); }},
    {"length_bit_flipped", [](Target& t) { return spoilt(t, [](Bytes f) { return flipped(f, 1); }); }},
    {"crc_zero", [](Target& t) { return spoilt(t, zero_crc); }},
    {"crc_zero_after_own_c0", [](Target& t) { return spoilt(t, zero_crc, no_crc()); }},
    {"crc_big_endian", [](Target& t) { return spoilt(t, big_endian_crc); }},
    {"crc_without_length", [](Target& t) { return spoilt(t, crc_without_length); }},
    {"crc_over_itself", [](Target& t) { return spoilt(t, crc_over_itself); }},
    {"crc_of_ethernet", [](Target& t) { return spoilt(t, other_polynomial); }},
    {"crc_left_out", [](Target& t) { return spoilt(t, without_crc); }},
    {"crc_left_out_unchecked", [](Target& t) { return spoilt(t, without_crc, no_crc(), Flavour::kPreferOff); }},
    {"pad_left_out",
     [](Target& t) {
       return spoilt(t, [](Bytes f) {
         f.erase(f.end() - 6, f.end() - 4);
         return f;
       });
     }},
    {"marker_unasked", [](Target& t) { return spoilt(t, [](Bytes f) { return Bytes(4) | f; }); }},
    {"marker_unasked_within",
     [](Target& t) {
       return spoilt(t, [](Bytes f) {
         f.insert(f.begin() + 20, 4, std::byte{0});
         return f;
       });
     }},
    {"marker_wrong",
     [](Target& t) { return spoilt_marker(t, 8, [](Bytes f) { return marked_with(f, 8, hex("0000000c")); }); }},
    {"marker_zero_within",
     [](Target& t) { return spoilt_marker(t, 8, [](Bytes f) { return marked_with(f, 8, Bytes(4)); }); }},
    {"marker_not_zero_between",
     [](Target& t) { return spoilt_marker(t, 0, [](Bytes f) { return marked_with(f, 0, hex("000001e8")); }); }},
    {"marker_reserved_set",
     [](Target& t) {
       return spoilt_marker(
           t, 8, [](Bytes f) { return marked_with(f, 8, hex("ffff000b")); }, true);
     }},
    {"marker_left_out", [](Target& t) { return spoilt_marker(t, 8, without_marker); }},
    {"marker_between_left_out", [](Target& t) { return spoilt_marker(t, 0, without_marker_before); }},
    {"marker_not_in_crc", [](Target& t) { return spoilt_marker(t, 8, marker_not_in_crc); }},
    {"marker_between_not_in_crc", [](Target& t) { return spoilt_marker(t, 0, marker_before_not_in_crc); }},
    {"marker_before_crc_wrong",
     [](Target& t) { return spoilt_marker(t, kBeforeCrc, [](Bytes f) { return flipped(f, kBeforeCrc); }); }},
    {"marker_before_crc",
     [](Target& t) {
       return spoilt_marker(
           t, kBeforeCrc, [](Bytes f) { return f; }, true);
     }},
    {"first_marker_left_out", first_marker_left_out},
    {"one_octet_between", [](Target& t) { return spoilt(t, [](Bytes f) { return f | Bytes(1); }); }},
    {"not_an_fpdu", [](Target& t) { return spoilt(t, [](Bytes) { return pattern(70000, 3); }); }},
    {"pad_not_zero", odd_pad},
    {"crc_garbage_unchecked",
     [](Target& t) {
       Peer peer = open(t, Flavour::kPreferOff, no_crc());
       peer.raw(garbage_crc(good(peer)));
       return verdict(peer, true);
     }},
    {"fin_inside_fpdu", ends_inside},
    {"ulpdu_empty",
     [](Target& t) {
       Peer peer = open(t);
       peer.ulpdu({});
       return verdict(peer);
     }},
    {"ulpdu_shorter_than_header",
     [](Target& t) {
       Peer peer = open(t);
       peer.ulpdu(hex("4143000000"));
       return verdict(peer);
     }},
};

}  // namespace

std::span<const Script> fpdu_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
