#include "iwarp/trace/sctp_capture.h"

#include "iwarp/base/wire.h"

namespace iwarp::trace {
namespace {

constexpr auto kTx = Direction::kTx;
constexpr auto kRx = Direction::kRx;

// The first message of a session: DDP-SSN 0 and an Initiate.
bool is_initiate(const SctpMessage& m) {
  if (m.ppid != static_cast<std::uint32_t>(sctp::Ppid::kSessionControl)) return false;
  const auto c = sctp::SessionControl::parse(m.bytes);
  return c && c->ssn == sctp::DdpSsn{} && sctp::plain(c->function) == sctp::Function::kInitiate;
}

bool is_known(std::uint32_t ppid) {
  return ppid == static_cast<std::uint32_t>(sctp::Ppid::kDdpSegment) ||
         ppid == static_cast<std::uint32_t>(sctp::Ppid::kSessionControl);
}

Pdu open_pdu(const std::pair<Endpoint, std::uint16_t>& client, const std::pair<Endpoint, std::uint16_t>& server) {
  Pdu open("Open");
  open.word("client", client.first.to_string()).word("server", server.first.to_string());
  if (client.second != 0) open.word("udp", std::to_string(client.second) + ":" + std::to_string(server.second));
  return open;
}

Pdu control_pdu(const sctp::SessionControl& c, bool ordered) {
  Pdu pdu(sctp::name(c.function));
  pdu.number("ssn", c.ssn.value);
  if (c.data) {
    pdu.number("p2p", c.data->peer_to_peer ? 1 : 0).number("rtr_send", c.data->rtr_send ? 1 : 0);
    pdu.number("rtr_write", c.data->rtr_write ? 1 : 0).number("rtr_read", c.data->rtr_read ? 1 : 0);
    pdu.number("ird", c.data->ird).number("ord", c.data->ord);
  }
  pdu.number("pd", c.private_data.size());
  if (!c.private_data.empty()) pdu.octets("private_data", c.private_data, sctp::kMaxPrivateDataBytes);
  if (ordered) pdu.number("ordered", 1);
  return pdu;
}

}  // namespace

void SctpCapture::packet(const SctpPacket& p, Duration at, std::uint64_t frame, std::uint64_t& next_number) {
  if (options_.port && p.source.port != *options_.port && p.destination.port != *options_.port &&
      p.source_udp != *options_.port && p.destination_udp != *options_.port)
    return;
  at_ = at;
  frame_ = frame;
  next_number_ = &next_number;
  const Ends as_client{{{p.source, p.source_udp}, {p.destination, p.destination_udp}}};
  const Ends as_server{as_client[1], as_client[0]};
  SctpChunks chunks(p.bytes, p.wire_bytes);
  while (const auto chunk = chunks.next()) {
    auto it = associations_.find(as_client);
    Direction d = kTx;
    if (it == associations_.end() && (it = associations_.find(as_server)) != associations_.end()) d = kRx;
    const auto init = chunk->type == SctpType::kInit ? parse_init(*chunk) : std::nullopt;
    const auto data = chunk->type == SctpType::kData ? parse_data(*chunk) : std::nullopt;
    if (init && it != associations_.end() &&
        !(d == kTx && it->second.inits[0] && it->second.inits[0]->tag == init->tag)) {
      close(it->second);  // another association between the same ends
      ages_.erase(it->second.age);
      associations_.erase(it);
      it = associations_.end();
    }
    if (it == associations_.end()) {
      if (!init && !data) continue;
      d = kTx;
      add(as_client, d, init.has_value());
      it = associations_.find(as_client);
    }
    Association& a = it->second;
    ages_.splice(ages_.end(), ages_, a.age);
    if (a.ignored) continue;
    if (init) on_init(a, d, *init);
    if (chunk->type == SctpType::kInitAck) {
      if (const auto ack = parse_init(*chunk)) on_init(a, d, *ack);
    }
    if (data) on_data(it->first, a, d, *data);
    if (chunk->type == SctpType::kShutdown) record(a, d, Pdu("Shutdown"));
    if (chunk->type == SctpType::kShutdownComplete) {
      record(a, d, Pdu("ShutdownComplete"));
      close(a);
    }
    if (chunk->type == SctpType::kAbort) abort(a, d);
    if (++a.packets % 64 == 0) relieve(a);
  }
}

SctpCapture::Association& SctpCapture::add(const Ends& ends, Direction d, bool from_beginning) {
  if (associations_.size() >= kMaxAssociations) {
    const auto oldest = associations_.find(ages_.front());
    if (!oldest->second.ignored) ++counts_.given_up;
    close(oldest->second);
    associations_.erase(oldest);
    ages_.pop_front();
  }
  Association& a = associations_[ends];
  a.number = (*next_number_)++;
  a.age = ages_.insert(ages_.end(), ends);
  a.ignored = options_.stream && *options_.stream != a.number;
  if (!a.ignored) {
    Pdu open = open_pdu(ends[0], ends[1]);
    record(a, d, std::move(open.number("init", from_beginning ? 1 : 0)));
  }
  return a;
}

void SctpCapture::on_init(Association& a, Direction d, const SctpInit& init) {
  if (a.inits[index(d)]) return;  // once more
  a.inits[index(d)] = init;
  Pdu pdu(d == kTx ? "Init" : "InitAck");
  pdu.number("outbound", init.outbound).number("inbound", init.inbound);
  if (init.indication) pdu.hex("indication", *init.indication);
  record(a, d, std::move(pdu));
  a.is_ddp = a.is_ddp || init.indication == sctp::kDdpIndication;
  if (!init.cut && init.indication != sctp::kDdpIndication) not_ddp(a, d);
}

void SctpCapture::not_ddp(Association& a, Direction d) {
  record(a, d, Pdu("NotDdp"));
  a.is_ddp = false;
  a.ignored = true;
  a.streams.clear();
}

void SctpCapture::on_data(const Ends& ends, Association& a, Direction d, const SctpData& data) {
  if (!a.is_ddp && !is_known(data.ppid)) return not_ddp(a, d);
  a.is_ddp = true;
  if (options_.verbose) {
    Pdu pdu("Data");
    pdu.number("tsn", data.tsn).number("stream", data.stream).number("ppid", data.ppid);
    pdu.word("flags", std::string(data.unordered ? "U" : "") + (data.begins ? "B" : "") + (data.ends ? "E" : ""));
    record(a, d, std::move(pdu.number("length", data.wire_bytes)));
  }
  auto message = a.messages[index(d)].add(data);
  dropped(a, d);
  if (message) on_message(ends, a, d, std::move(*message));
}

void SctpCapture::dropped(Association& a, Direction d) {
  const std::uint64_t bytes = a.messages[index(d)].take_dropped();
  if (bytes == 0) return;
  counts_.totals.undecoded += bytes;
  Pdu pdu("Undecoded");
  record(a, d, std::move(pdu.number("bytes", bytes).text("why", "fragments of messages without the rest")), true);
}

SctpCapture::Stream* SctpCapture::stream_of(const Ends& ends, Association& a, std::uint16_t id) {
  const auto known = a.streams.find(id);
  if (known != a.streams.end()) return known->second.get();
  if (a.streams.size() >= kMaxStreams) return nullptr;
  DecoderOptions o;
  o.connection = std::to_string(a.number) + "/" + std::to_string(id);
  o.carrier = "sctp";
  o.verbose = options_.verbose;
  o.config_program = options_.config_program;
  o.calls = calls_;
  o.ends = {ends[0].first.address, ends[1].first};
  Stream& s = *a.streams.emplace(id, std::make_unique<Stream>(std::move(o))).first->second;
  for (const Direction d : {kTx, kRx}) {
    if (a.inits[index(d)]) s.orders[index(d)].begin();
  }
  s.decoder.set_frame(frame_);
  s.decoder.add(at_, kTx, "sctp", open_pdu(ends[0], ends[1]));
  return &s;
}

void SctpCapture::on_message(const Ends& ends, Association& a, Direction d, SctpMessage message) {
  Stream* s = stream_of(ends, a, message.stream);
  if (s == nullptr) {
    counts_.totals.undecoded += message.bytes.size();
    return;
  }
  s->decoder.set_frame(frame_);
  if (!sctp::parse_ssn(message.bytes)) {
    s->decoder.undecoded(d, message.bytes.size(), "a message without DDP-SSN");
  } else {
    if (is_initiate(message)) {  // whatever is missing of the session before does not come any more
      settle(*s);
      for (SctpOrder& order : s->orders) order.begin();
    }
    s->orders[index(d)].add(std::move(message));
    drain(*s, d);
  }
  collect(*s);
}

void SctpCapture::settle(Stream& s) {
  for (const Direction d : {kTx, kRx}) {
    s.orders[index(d)].finish();
    drain(s, d);
    s.decoder.gap(d, at_);
  }
}

void SctpCapture::drain(Stream& s, Direction d) {
  while (const auto item = s.orders[index(d)].next()) {
    if (const auto* lost = std::get_if<SctpOrder::Lost>(&*item)) {
      s.decoder.gap(d, at_);
      s.decoder.add(at_, d, "sctp", Pdu("Lost").number("messages", lost->messages), true);
    } else if (const auto* stray = std::get_if<SctpOrder::Stray>(&*item)) {
      s.decoder.undecoded(d, stray->message.bytes.size(), "a DDP-SSN that was there already");
    } else {
      on_item(s, d, std::get<SctpMessage>(*item));
    }
  }
}

void SctpCapture::on_item(Stream& s, Direction d, const SctpMessage& m) {
  if (m.ppid == static_cast<std::uint32_t>(sctp::Ppid::kSessionControl)) return on_control(s, d, m);
  if (m.ppid != static_cast<std::uint32_t>(sctp::Ppid::kDdpSegment))
    return s.decoder.undecoded(d, m.bytes.size(), "a message of another protocol");
  if (options_.verbose || m.ordered) {
    Pdu pdu("Segment");
    pdu.number("ssn", sctp::parse_ssn(m.bytes)->value).number("chunks", m.fragments);
    if (m.ordered) pdu.number("ordered", 1);
    s.decoder.add(at_, d, "sctp", std::move(pdu.number("length", m.wire_bytes - sctp::kSsnBytes)), m.ordered);
  }
  s.decoder.segment(d, sctp::behind_ssn(m.bytes), m.wire_bytes - sctp::kSsnBytes, at_);
}

void SctpCapture::on_control(Stream& s, Direction d, const SctpMessage& m) {
  const auto c = sctp::SessionControl::parse(m.bytes);
  if (!c) {
    const bool cut = m.bytes.size() < m.wire_bytes;
    return s.decoder.undecoded(d, m.bytes.size(), cut ? "the capture lacks a part of it" : c.error().why);
  }
  const bool reject = sctp::plain(c->function) == sctp::Function::kReject;
  s.decoder.add(at_, d, "sctp", control_pdu(*c, m.ordered), reject || m.ordered);
  if (c->function != sctp::Function::kTerminate) s.decoder.private_data(d, c->private_data, at_);
}

void SctpCapture::abort(Association& a, Direction d) {
  for (const auto& [id, s] : a.streams) {
    s->decoder.set_frame(frame_);
    s->decoder.add(at_, d, "sctp", Pdu("Abort"), true);
    collect(*s);
  }
  record(a, d, Pdu("Abort"), true);
  close(a);
}

// Only its records and its name remain.
void SctpCapture::close(Association& a) {
  if (a.ignored) return;
  for (const Direction d : {kTx, kRx}) {
    a.messages[index(d)].finish();
    dropped(a, d);
  }
  for (const auto& [id, s] : a.streams) {
    s->decoder.set_frame(0);
    settle(*s);
    s->decoder.finish(at_);
    collect(*s);
    for (const Direction d : {kTx, kRx}) counts_.totals += s->decoder.totals(d);
    counts_.forgotten_rpcs += s->decoder.forgotten_rpcs();
  }
  counts_.associations += a.is_ddp ? 1 : 0;
  a.streams.clear();
  a.messages = {};
  a.ignored = true;
}

void SctpCapture::relieve(Association& a) {
  std::size_t bytes = 0;
  for (const auto& [id, s] : a.streams) bytes += s->decoder.memory() + s->orders[0].memory() + s->orders[1].memory();
  if (bytes <= kMaxBytes) return;
  for (const auto& [id, s] : a.streams) {
    settle(*s);
    s->decoder.forget();
    collect(*s);
  }
}

void SctpCapture::finish(Duration at) {
  at_ = at;
  frame_ = 0;
  for (const Ends& ends : ages_) close(associations_.at(ends));
}

void SctpCapture::record(const Association& a, Direction d, Pdu pdu, bool error) {
  Record r;
  r.when = {at_, frame_};
  r.connection = std::to_string(a.number);
  r.direction = d;
  r.layer = "sctp";
  r.error = error;
  if (frame_ != 0) pdu.first_number("frame", frame_);
  r.pdu = std::move(pdu);
  records_.push_back(std::move(r));
}

void SctpCapture::collect(Stream& s) {
  for (Record& r : s.decoder.take()) records_.push_back(std::move(r));
}

}  // namespace iwarp::trace
