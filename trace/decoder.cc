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

// "Request(...)" with the private data itself in place of its length alone.
std::string startup_line(const mpa::StartupFrame& frame) {
  std::string line = frame.to_string();
  if (frame.private_data.empty()) return line;
  line.pop_back();
  std::string data = Pdu("").octets("private_data", frame.private_data, mpa::kMaxPrivateDataBytes).str();
  return line + ", " + data.substr(1);
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
    : options_(std::move(options)), lines_(options_.connection), rpc_(options_.rpcrdma) {}

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
  lines_.add(at, d, "tcp", Pdu("Lost").number("bytes", bytes).str());
  h.stream.lose(bytes);
  drain(d, at);
}

void Decoder::end(Direction d, End how, Duration at) {
  lines_.add(at, d, "tcp", Pdu(how == End::kFin ? "Fin" : how == End::kReset ? "Reset" : "Silence").str());
}

void Decoder::finish(Duration at) {
  for (const Direction d : {Direction::kTx, Direction::kRx}) {
    Half& h = half(d);
    if (is_not_mpa()) return;
    h.stream.close();
    drain(d, at);
    flush_undecoded(d, at);
    interrupt(d, at);
    const Totals& t = h.totals;
    Pdu pdu("Total");
    pdu.number("bytes", t.bytes).number("fpdus", t.fpdus).number("messages", t.messages);
    pdu.number("undecoded", t.undecoded).number("lost", t.lost).number("bad_crc", t.bad_crc);
    lines_.add(at, d, "tcp", pdu.number("malformed", t.malformed).str());
  }
}

void Decoder::add_line(Duration at, Direction d, const char* layer, const Pdu& pdu) {
  lines_.add(at, d, layer, pdu.str());
}

void Decoder::drain(Direction d, Duration at) {
  while (const auto item = half(d).stream.next()) {
    std::visit([&](const auto& i) { on(d, at, i); }, *item);
  }
}

void Decoder::on(Direction d, Duration at, const HalfStream::Startup& item) {
  lines_.add(at, d, "mpa", startup_line(item.frame));
  if (const auto line = rpc_.on_private_data(item.frame.private_data)) lines_.add(at, d, "rpcrdma", *line);
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
    if (half(opposite(d)).startup->markers) s.stop("MPA Markers are not decoded");
    if ((tx->is_reply && tx->reject) || (rx->is_reply && rx->reject)) s.stop("the connection was rejected");
  }
}

void Decoder::on(Direction d, Duration at, const HalfStream::Fpdu& item) {
  Half& h = half(d);
  ++h.totals.fpdus;
  if (item.crc == HalfStream::Crc::kBad) {
    flush_undecoded(d, at);
    ++h.totals.bad_crc;
    lines_.add(at, d, "mpa",
               Pdu("BadCrc")
                   .number("ulpdu", item.ulpdu_bytes)
                   .hex("computed", item.computed)
                   .hex("received", item.received)
                   .str());
    undecoded(d, item.seen_bytes, "wrong CRC");
    interrupt(d, at);
    return;
  }
  if (options_.verbose) {
    Pdu pdu("Fpdu");
    pdu.number("ulpdu", item.ulpdu_bytes).word("crc", crc_word(item.crc));
    lines_.add(at, d, "mpa", pdu.str());
  }
  const auto header = ddp::parse_segment_header(item.ulpdu);
  if (!header) {
    const bool cut = item.ulpdu.size() < item.ulpdu_bytes;
    return undecoded(d, item.seen_bytes, cut ? "the capture lacks the DDP header" : header.error().why);
  }
  const auto op = rdmap::check_control(*header);
  if (!op) return undecoded(d, item.seen_bytes, op.error().why);
  flush_undecoded(d, at);
  const std::size_t header_bytes = ddp::header_size(*header);
  const std::size_t payload_bytes = item.ulpdu_bytes - header_bytes;
  if (options_.verbose) write_segment(d, at, *header, payload_bytes);
  for (const Message& m : h.messages.add(*header, *op, item.ulpdu.subspan(header_bytes), payload_bytes)) {
    write(d, at, m);
  }
}

void Decoder::on(Direction d, Duration at, const HalfStream::Undecoded& item) {
  interrupt(d, at);
  undecoded(d, item.bytes, item.why);
}

void Decoder::on(Direction d, Duration at, const HalfStream::Aligned& item) {
  interrupt(d, at);
  flush_undecoded(d, at);
  lines_.add(at, d, "mpa", Pdu("Aligned").word("crc", item.crc ? "on" : "off").str());
}

void Decoder::on(Direction d, Duration at, const HalfStream::NotMpa& item) {
  if (half(opposite(d)).startup) {  // an iWARP connection all the same: the other end began as it should
    half(d).stream.stop("behind what is no startup frame");
    return undecoded(d, item.bytes, "no startup frame");
  }
  half(d).not_mpa = true;
  lines_.add(at, d, "tcp", Pdu("NotMpa").str());
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
  lines_.add(at, d, "mpa",
             Pdu("Undecoded").number("bytes", std::exchange(h.undecoded_run, 0)).text("why", h.why_undecoded).str());
}

void Decoder::interrupt(Direction d, Duration at) {
  for (const Message& m : half(d).messages.interrupt()) write(d, at, m);
}

}  // namespace iwarp::trace
