#include "iwarp/trace/capture.h"

#include <utility>

namespace iwarp::trace {

void Capture::packet(Duration at, LinkType link, ConstBytes captured, std::size_t wire_bytes) {
  ++counts_.packets;
  const auto parsed = parse_packet(link, captured, wire_bytes);
  if (const auto* other = std::get_if<NotTcp>(&parsed)) {
    counts_.fragments += *other == NotTcp::kFragment;
    counts_.cut += *other == NotTcp::kCut;
    return;
  }
  if (const auto* sctp = std::get_if<SctpPacket>(&parsed)) {
    sctp_.packet(*sctp, at, counts_.packets, next_number_);
    take_from_sctp();
    return;
  }
  const auto& s = std::get<TcpSegment>(parsed);
  if (options_.port && s.source.port != *options_.port && s.destination.port != *options_.port) return;
  Direction d = Direction::kTx;
  auto it = find(s, d);
  const bool opens = s.syn && !s.ack;
  if (it != connections_.end() && opens) {
    const auto known = it->second.halves[index(d)].syn();
    if (known != s.sequence) {  // the port is used again
      close(it->second, at);
      ages_.erase(it->second.age);
      connections_.erase(it);
      it = connections_.end();
    }
  }
  if (it == connections_.end()) {
    if (s.reset || (!s.syn && s.payload_bytes == 0)) return;
    const bool from_server = s.syn && s.ack;
    d = from_server ? Direction::kRx : Direction::kTx;
    it = add(from_server ? Key{s.destination, s.source} : Key{s.source, s.destination}, at, s.syn);
  }
  Connection& c = it->second;
  ages_.splice(ages_.end(), ages_, c.age);
  if (c.ignored) return;
  feed(c, d, s, at);
  count_memory(c);
  if (held_bytes_ > options_.max_bytes) make_room(at);
}

Capture::Connections::iterator Capture::find(const TcpSegment& s, Direction& d) {
  d = Direction::kTx;
  auto it = connections_.find({s.source, s.destination});
  if (it == connections_.end()) {
    it = connections_.find({s.destination, s.source});
    if (it != connections_.end()) d = Direction::kRx;
  }
  return it;
}

Capture::Connections::iterator Capture::add(const Key& key, Duration at, bool syn) {
  if (connections_.size() >= kMaxConnections) {
    const auto oldest = connections_.find(ages_.front());
    if (!oldest->second.ignored) ++counts_.given_up;
    give_up(oldest->second, at);
    connections_.erase(oldest);
    ages_.pop_front();
  }
  const std::uint64_t number = next_number_++;
  DecoderOptions o;
  o.connection = std::to_string(number);
  o.verbose = options_.verbose;
  o.config_program = options_.config_program;
  o.calls = calls_;
  o.ends = {key.first.address, key.second};
  if (key.first.port == kNfsRdmaPort || key.second.port == kNfsRdmaPort) o.rpcrdma = RpcGuess::kYes;
  const auto it = connections_.emplace(key, o).first;
  Connection& c = it->second;
  c.age = ages_.insert(ages_.end(), key);
  c.ignored = options_.stream && *options_.stream != number;
  if (!c.ignored) {
    Pdu open("Open");
    open.word("client", key.first.to_string()).word("server", key.second.to_string());
    open.number("syn", syn ? 1 : 0);
    c.decoder.set_frame(counts_.packets);
    c.decoder.add(at, Direction::kTx, "tcp", std::move(open));
  }
  return it;
}

void Capture::feed(Connection& c, Direction d, const TcpSegment& s, Duration at) {
  TcpReassembly& own = c.halves[index(d)];
  TcpReassembly& other = c.halves[index(opposite(d))];
  c.decoder.set_frame(counts_.packets);
  if (s.syn) own.on_syn(s.sequence);
  own.on_segment(s.syn ? s.sequence + 1 : s.sequence, s.payload, s.payload_bytes, s.fin);
  if (s.ack) {
    other.on_ack(s.acknowledged);
  } else {
    other.on_other_packet();
  }
  drain(c, opposite(d), at);
  drain(c, d, at);
  if (s.reset) {
    c.decoder.end(d, Decoder::End::kReset, at);
    close(c, at);
  } else if (c.ended[0] && c.ended[1]) {
    close(c, at);
  } else if (c.decoder.is_not_mpa()) {
    collect(c);
  } else {
    take_from(c);
  }
}

void Capture::take_from(Connection& c) {
  for (Record& r : c.decoder.take()) records_.push_back(std::move(r));
}

void Capture::drain(Connection& c, Direction d, Duration at) {
  TcpReassembly& half = c.halves[index(d)];
  while (const auto item = half.next()) {
    if (!std::exchange(c.begun[index(d)], true)) c.decoder.start(d, half.syn().has_value());
    if (const auto* data = std::get_if<TcpReassembly::Data>(&*item)) {
      c.decoder.receive(d, data->bytes, at);
    } else if (const auto* lost = std::get_if<TcpReassembly::Lost>(&*item)) {
      c.decoder.lose(d, lost->bytes, at);
    } else {
      c.ended[index(d)] = true;
      c.decoder.end(d, Decoder::End::kFin, at);
    }
  }
}

// No packet of its own ends it.
void Capture::give_up(Connection& c, Duration at) {
  c.decoder.set_frame(0);
  close(c, at);
}

void Capture::close(Connection& c, Duration at) {
  if (c.ignored) return;
  for (const Direction d : {Direction::kTx, Direction::kRx}) {
    c.halves[index(d)].on_end();
    drain(c, d, at);
  }
  c.decoder.finish(at);
  collect(c);
}

// The connection is over or none of ours: only its records and its name remain.
void Capture::collect(Connection& c) {
  take_from(c);
  if (!c.decoder.is_not_mpa()) {
    ++counts_.connections;
    for (const Direction d : {Direction::kTx, Direction::kRx}) counts_.totals += c.decoder.totals(d);
  }
  counts_.forgotten_rpcs += c.decoder.forgotten_rpcs();
  c.decoder = Decoder(DecoderOptions{});
  c.halves = {};
  c.ignored = true;
  count_memory(c);
}

void Capture::count_memory(Connection& c) {
  const std::size_t now = c.ignored ? 0 : c.decoder.memory() + c.halves[0].memory() + c.halves[1].memory();
  held_bytes_ = held_bytes_ - c.bytes + now;
  c.bytes = now;
}

// More than what is needed, so that not each packet has to look for it.
void Capture::make_room(Duration at) {
  const std::size_t enough = options_.max_bytes / 4 * 3;
  for (auto age = ages_.begin(); age != ages_.end() && held_bytes_ > enough; ++age) {
    Connection& c = connections_.at(*age);
    if (c.ignored) continue;
    c.decoder.set_frame(0);  // no packet of its own
    for (const Direction d : {Direction::kTx, Direction::kRx}) {
      c.halves[index(d)].on_end();
      drain(c, d, at);
      c.halves[index(d)].resume();
    }
    c.decoder.forget();
    take_from(c);
    count_memory(c);
  }
  for (auto age = ages_.begin(); age != ages_.end() && held_bytes_ > enough; ++age) {
    Connection& c = connections_.at(*age);
    if (c.bytes == 0) continue;
    ++counts_.given_up;
    give_up(c, at);
  }
}

void Capture::finish(Duration at) {
  for (const Key& key : ages_) give_up(connections_.at(key), at);
  sctp_.finish(at);
  take_from_sctp();
}

void Capture::take_from_sctp() {
  for (Record& r : sctp_.take()) records_.push_back(std::move(r));
  const SctpCapture::Counts c = sctp_.take_counts();
  counts_.connections += c.associations;
  counts_.totals += c.totals;
  counts_.forgotten_rpcs += c.forgotten_rpcs;
  counts_.given_up += c.given_up;
}

}  // namespace iwarp::trace
