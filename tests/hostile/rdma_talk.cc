#include "tests/hostile/rdma_talk.h"

#include <algorithm>
#include <thread>

namespace iwarp::hostile {
namespace {

constexpr std::string_view kMagic = "HOST";

// How long another program may take to deregister the memory of a connection that has ended.
constexpr auto kDeregistration = std::chrono::seconds(1);

// A good first exchange, and the memory that the victim read into.
Region read_sink(Peer& peer) {
  const rdmap::ReadRequest read = provoke_read(peer);
  peer.respond(read);
  if (peer.hear_message().kind != Heard::Kind::kSend) throw std::runtime_error("no good exchange");
  return {read.sink_stag, read.sink_to, read.size};
}

// The Reply, or what stands in its place.
test::FrameRead await_reply(const Target& target, RawTcp& tcp) {
  if (target.meanwhile) target.meanwhile();
  return test::read_frame(tcp, true);
}

// What a victim does that does not accept.
Reaction refusal(const test::FrameRead& reply, RawTcp& tcp) {
  if (!reply.complete && !reply.bytes.empty()) return "unreadable octets";
  const RawTcp::End end = tcp.end(5000);
  if (end != RawTcp::End::kFin && end != RawTcp::End::kReset)
    return reply.complete ? "reject, but TCP goes on" : "silence";
  return reply.complete ? kReject : kClose;
}

}  // namespace

Bytes Advert::encode() const {
  Bytes out(4 + 4 * stags.size());
  for (std::size_t i = 0; i < kMagic.size(); ++i) out[i] = static_cast<std::byte>(kMagic[i]);
  for (std::size_t i = 0; i < stags.size(); ++i)
    store_be<std::uint32_t>(MutBytes(out).subspan(4 + 4 * i), raw(stags[i]));
  return out;
}

std::optional<Advert> Advert::parse(const Bytes& data) {
  Advert out;
  const auto same = [](std::byte b, char c) { return b == static_cast<std::byte>(c); };
  if (data.size() != 4 + 4 * out.stags.size() ||
      !std::equal(kMagic.begin(), kMagic.end(), data.begin(), [&](char c, std::byte b) { return same(b, c); })) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < out.stags.size(); ++i)
    out.stags[i] = Stag{load_be<std::uint32_t>(ConstBytes(data).subspan(4 + 4 * i))};
  return out;
}

mpa::StartupFrame polite_request() {
  mpa::StartupFrame f;
  f.crc = f.enhanced = true;
  f.enhanced_data = {.peer_to_peer = true, .rtr_write = true, .ird = 8, .ord = 8};
  return f;
}

mpa::StartupFrame polite_reply() {
  mpa::StartupFrame f = polite_request();
  f.is_reply = true;
  return f;
}

Bytes altered(Bytes octets, std::initializer_list<std::pair<std::size_t, unsigned>> changes) {
  for (const auto& [at, value] : changes) octets.at(at) = static_cast<std::byte>(value);
  return octets;
}

Peer open(Target& target, Flavour flavour, const mpa::StartupFrame& request) {
  RawTcp tcp = target.dial(flavour);
  (void)tcp.send(test::octets(request));
  return finish_opening(target, std::move(tcp), request);
}

Peer finish_opening(Target& target, RawTcp tcp, const mpa::StartupFrame& request) {
  const test::FrameRead reply = await_reply(target, tcp);
  if (!reply.complete || reply.frame.reject) throw Refused(refusal(reply, tcp));
  std::this_thread::sleep_for(target.settle());
  const ConstBytes data = reply.frame.private_data;
  Peer peer(target, std::move(tcp), request.crc || reply.frame.crc, Bytes(data.begin(), data.end()),
            {.heard = request.markers, .sent = reply.frame.markers});
  if (!reply.frame.enhanced || !reply.frame.enhanced_data.peer_to_peer) return peer;
  if (reply.frame.enhanced_data.rtr_read) {
    peer.ulpdu(test::read_request_segment({Stag{1}, 0, 0, Stag{1}, 0}));
    if (peer.hear().kind != Heard::Kind::kReadResponse) throw std::runtime_error("no answer to the RTR");
  } else {
    peer.ulpdu(test::write_segment(Stag{1}, 0, {}));
  }
  std::this_thread::sleep_for(target.settle());
  return peer;
}

Peer lure(Target& target, Flavour flavour, mpa::StartupFrame reply) {
  RawTcp tcp = target.hook(flavour);
  const test::FrameRead request = test::read_frame(tcp, false);
  if (!request.complete) throw std::runtime_error("the victim sent no Request");
  reply.revision = request.frame.revision;
  // Who asks for A=0, as a requester of RPC-over-RDMA does, gets it.
  if (!request.frame.enhanced_data.peer_to_peer) {
    mpa::EnhancedData& data = reply.enhanced_data;
    data.peer_to_peer = data.rtr_write = data.rtr_read = false;
  }
  (void)tcp.send(test::octets(reply));
  return Peer(target, std::move(tcp), request.frame.crc || reply.crc);
}

Bytes info(std::uint32_t size) {
  Bytes out(16);
  store_be<std::uint32_t>(MutBytes(out).subspan(8), 0x700);
  store_be<std::uint32_t>(MutBytes(out).subspan(12), size);
  return out;
}

rdmap::ReadRequest provoke_read(Peer& peer, std::uint32_t size) {
  peer.send(info(size));
  for (;;) {
    const Heard heard = peer.hear();
    if (heard.kind != Heard::Kind::kReadRequest) throw std::runtime_error("the victim did not read");
    if (heard.read.size != 0) return heard.read;
    peer.respond(heard.read);  // an RTR
  }
}

Region find_memory(Target& target, Peer& peer, Memory kind) {
  if (const auto advert = Advert::parse(peer.private_data)) return {(*advert)[kind], kBase, kRegionBytes};
  switch (kind) {
    case Memory::kOpen:
    case Memory::kInvalidable:
      return read_sink(peer);
    case Memory::kForeign: {
      const auto other = std::make_shared<Peer>(open(target));
      Region region = read_sink(*other);
      region.owner = other;
      return region;
    }
    case Memory::kRevoked: {
      Region region;
      {
        Peer other = open(target);
        region = read_sink(other);
      }
      std::this_thread::sleep_for(kDeregistration);
      return region;
    }
    case Memory::kReadOnly:
      throw Inapplicable("it registers no memory for remote reading only");
    case Memory::kWriteOnly:
      throw Inapplicable("it registers no memory for remote writing only");
    case Memory::kOtherStream:
      throw Inapplicable("it binds memory to Protection Domains, and has one for each connection");
    case Memory::kShifted:
      throw Inapplicable("the addresses of its memory are not known");
    case Memory::kCount:
      break;
  }
  throw std::logic_error("no such memory");
}

Bytes read_burst(const Peer& peer, std::uint32_t count) {
  Bytes out;
  for (std::uint32_t msn = 1; msn <= count; ++msn)
    out = std::move(out) | test::fpdu(test::read_request_segment({Stag{1}, 0, 0, Stag{1}, 0}, msn), peer.crc);
  return out;
}

Reaction verdict(Peer& peer, bool announced) {
  for (int round = 0; round < 2; ++round) {
    if (!announced || round > 0) peer.send(info());
    const Heard heard = peer.hear_message();
    if (const auto end = peer.ending(heard)) return *end;
  }
  return kIgnore;
}

Reaction startup_verdict(Target& target, RawTcp& tcp) {
  const test::FrameRead reply = await_reply(target, tcp);
  return reply.complete && !reply.frame.reject ? "accepted" : refusal(reply, tcp);
}

}  // namespace iwarp::hostile
