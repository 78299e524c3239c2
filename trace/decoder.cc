#include "iwarp/trace/decoder.h"

#include <utility>

namespace iwarp::trace {
namespace {

const char* crc_word(HalfStream::Crc crc) {
  switch (crc) {
    case HalfStream::Crc::kGood:
      return "good";
    case HalfStream::Crc::kBad:
      return "bad";
    case HalfStream::Crc::kOff:
      return "off";
    case HalfStream::Crc::kUnknown:
      return "unknown";
  }
  return "?";
}

Pdu startup_pdu(const mpa::StartupFrame& f) {
  Pdu pdu(f.is_reply ? "Reply" : "Request");
  const auto flag = [&pdu](const char* name, bool on) { pdu.number(name, on ? 1 : 0); };
  pdu.number("rev", f.revision);
  if (f.is_reply || f.reject) flag("reject", f.reject);
  flag("crc", f.crc);
  flag("markers", f.markers);
  flag("enhanced", f.enhanced);
  if (f.enhanced) {
    const mpa::EnhancedData& e = f.enhanced_data;
    flag("p2p", e.peer_to_peer);
    flag("rtr_send", e.rtr_send);
    flag("rtr_write", e.rtr_write);
    flag("rtr_read", e.rtr_read);
    pdu.number("ird", e.ird).number("ord", e.ord);
  }
  if (f.reserved_bits != 0) pdu.number("res", f.reserved_bits);
  pdu.number("pd", f.private_data.size());
  if (!f.private_data.empty()) pdu.octets("private_data", f.private_data, mpa::kMaxPrivateDataBytes);
  return pdu;
}

}  // namespace

Totals& Totals::operator+=(const Totals& other) {
  bytes += other.bytes;
  fpdus += other.fpdus;
  messages += other.messages;
  undecoded += other.undecoded;
  lost += other.lost;
  bad_crc += other.bad_crc;
  malformed += other.malformed;
  return *this;
}

Decoder::Decoder(DecoderOptions options)
    : options_(std::move(options)),
      rpc_({options_.rpcrdma, options_.config_program, options_.calls, options_.ends, options_.connection}) {}

void Decoder::start(Direction d, bool from_beginning) {
  half(d).stream = HalfStream(from_beginning);
}

void Decoder::receive(Direction d, ConstBytes bytes, Duration at) {
  half(d).totals.bytes += bytes.size();
  half(d).stream.feed(bytes);
  drain(d, at);
}

void Decoder::lose(Direction d, std::uint64_t bytes, Duration at) {
  Half& h = half(d);
  if (h.not_mpa) return;
  h.totals.lost += bytes;
  push(d, at, "tcp", Pdu("Lost").number("bytes", bytes), true);
  h.stream.lose(bytes);
  drain(d, at);
}

void Decoder::end(Direction d, End how, Duration at) {
  push(d, at, "tcp", Pdu(how == End::kFin ? "Fin" : how == End::kReset ? "Reset" : "Silence"), how != End::kFin);
}

void Decoder::finish(Duration at) {
  const std::uint64_t frame = frame_;
  for (const Direction d : {Direction::kTx, Direction::kRx}) {
    Half& h = half(d);
    if (is_not_mpa()) return;
    frame_ = frame;
    h.stream.close();
    drain(d, at);
    flush_undecoded(d, at);
    interrupt(d, at);
    const Totals& t = h.totals;
    frame_ = 0;  // a Total is about no packet
    Pdu pdu("Total");
    pdu.number("bytes", t.bytes).number("fpdus", t.fpdus).number("messages", t.messages);
    pdu.number("undecoded", t.undecoded).number("lost", t.lost).number("bad_crc", t.bad_crc);
    push(d, at, options_.carrier == "sctp" ? "sctp" : "tcp", pdu.number("malformed", t.malformed),
         !t.all_decoded() || t.bad_crc > 0);
  }
}

std::size_t Decoder::memory() const {
  std::size_t out = rpc_.memory();
  for (const Half& h : halves_) out += h.stream.memory() + h.messages.memory();
  return out;
}

void Decoder::forget() {
  rpc_.forget();
  for (Half& h : halves_) h.stream.shrink();
}

void Decoder::add(Duration at, Direction d, std::string_view layer, Pdu pdu, bool error) {
  push(d, at, layer, std::move(pdu), error);
}

Record& Decoder::push(Direction d, Duration at, Record record) {
  record.when = {at, frame_};
  record.connection = options_.connection;
  record.direction = d;
  if (frame_ != 0) record.pdu.first_number("frame", frame_);
  return records_.emplace_back(std::move(record));
}

Record& Decoder::push(Direction d, Duration at, std::string_view layer, Pdu pdu, bool error) {
  Record r;
  r.layer = layer;
  r.pdu = std::move(pdu);
  r.error = error;
  return push(d, at, std::move(r));
}

void Decoder::push(Direction d, Duration at, RpcView::Events events) {
  for (RpcView::Event& e : events) {
    if (e.malformed) ++half(d).totals.malformed;
    push(d, at, std::move(e.record));
  }
}

void Decoder::drain(Direction d, Duration at) {
  while (const auto item = half(d).stream.next()) {
    std::visit([&](const auto& i) { on(d, at, i); }, *item);
  }
}

void Decoder::on(Direction d, Duration at, const HalfStream::Startup& item) {
  push(d, at, "mpa", startup_pdu(item.frame), item.frame.is_reply && item.frame.reject);
  if (auto pdu = rpc_.on_private_data(item.frame.private_data)) push(d, at, "rpcrdma", std::move(*pdu));
  half(d).startup = item.frame;
  half(d).startup->private_data = {};
  negotiated();
}

// Once both frames are there they tell how the rest is to be read (RFC 5044 s7.1).
void Decoder::negotiated() {
  const auto &tx = half(Direction::kTx).startup, &rx = half(Direction::kRx).startup;
  if (!tx || !rx) return;
  for (const Direction d : {Direction::kTx, Direction::kRx}) {
    HalfStream& s = half(d).stream;
    s.set_crc(tx->crc || rx->crc);
    s.set_markers(half(opposite(d)).startup->markers);
    if ((tx->is_reply && tx->reject) || (rx->is_reply && rx->reject)) s.stop("the connection was rejected");
  }
}

void Decoder::on(Direction d, Duration at, const HalfStream::Fpdu& item) {
  Half& h = half(d);
  ++h.totals.fpdus;
  if (item.crc == HalfStream::Crc::kBad) {
    flush_undecoded(d, at);
    ++h.totals.bad_crc;
    Pdu pdu("BadCrc");
    pdu.number("ulpdu", item.ulpdu_bytes).hex("computed", item.computed).hex("received", item.received);
    push(d, at, "mpa", std::move(pdu), true);
    undecoded(d, item.seen_bytes, "wrong CRC");
    interrupt(d, at);
    return;
  }
  if (options_.verbose) {
    Pdu pdu("Fpdu");
    push(d, at, "mpa", pdu.number("ulpdu", item.ulpdu_bytes).word("crc", crc_word(item.crc)));
  }
  on_ulpdu(d, at, item.ulpdu, item.ulpdu_bytes, item.seen_bytes);
}

// `carried_bytes`: what was captured of it and of what frames it.
void Decoder::on_ulpdu(Direction d, Duration at, ConstBytes seen, std::size_t ulpdu_bytes, std::size_t carried_bytes) {
  const auto header = ddp::parse_segment_header(seen);
  if (!header) {
    const bool cut = seen.size() < ulpdu_bytes;
    return undecoded(d, carried_bytes, cut ? "the capture lacks the DDP header" : header.error().why);
  }
  const auto op = rdmap::check_control(*header, rdmap::Extensions::kRfc7306);
  if (!op) return undecoded(d, carried_bytes, op.error().why);
  flush_undecoded(d, at);
  const std::size_t header_bytes = ddp::header_size(*header);
  const std::size_t payload_bytes = ulpdu_bytes - header_bytes;
  if (options_.verbose) write_segment(d, at, *header, payload_bytes);
  for (const Message& m : half(d).messages.add(*header, *op, seen.subspan(header_bytes), payload_bytes)) {
    write(d, at, m);
  }
}

void Decoder::segment(Direction d, ConstBytes seen, std::size_t bytes, Duration at) {
  Totals& t = half(d).totals;
  t.bytes += seen.size();
  t.lost += bytes - seen.size();
  ++t.fpdus;
  on_ulpdu(d, at, seen, bytes, seen.size());
}

void Decoder::private_data(Direction d, ConstBytes octets, Duration at) {
  if (auto pdu = rpc_.on_private_data(octets)) push(d, at, "rpcrdma", std::move(*pdu));
}

void Decoder::on(Direction d, Duration at, const HalfStream::Undecoded& item) {
  interrupt(d, at);
  undecoded(d, item.bytes, item.why);
}

void Decoder::on(Direction d, Duration at, const HalfStream::Aligned& item) {
  interrupt(d, at);
  flush_undecoded(d, at);
  push(d, at, "mpa", Pdu("Aligned").word("crc", item.crc ? "on" : "off"));
}

void Decoder::on(Direction d, Duration at, const HalfStream::NotMpa& item) {
  if (half(opposite(d)).startup) {  // an iWARP connection all the same: the other end began as it should
    half(d).stream.stop("behind what is no startup frame");
    return undecoded(d, item.bytes, "no startup frame");
  }
  half(d).not_mpa = true;
  push(d, at, "tcp", Pdu("NotMpa"));
}

void Decoder::undecoded(Direction d, std::uint64_t bytes, const char* why) {
  Half& h = half(d);
  h.totals.undecoded += bytes;
  h.undecoded_run += bytes;
  h.why_undecoded = why;
}

void Decoder::flush_undecoded(Direction d, Duration at) {
  Half& h = half(d);
  if (h.undecoded_run == 0) return;
  Pdu pdu("Undecoded");
  pdu.number("bytes", std::exchange(h.undecoded_run, 0)).text("why", h.why_undecoded);
  push(d, at, options_.carrier, std::move(pdu), true);
}

void Decoder::interrupt(Direction d, Duration at) {
  for (const Message& m : half(d).messages.interrupt()) write(d, at, m);
}

}  // namespace iwarp::trace
