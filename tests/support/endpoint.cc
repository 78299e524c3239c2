#include "tests/support/endpoint.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace iwarp::test {

Endpoint::Endpoint(unsigned number, const stream::Options& options, std::size_t scratch_bytes,
                   rdmap::ReceiveSource* shared)
    : key_{PdId{number}, ddp::StreamId{100 + number}},
      random_(number),
      endpoint_(stags_, key_, options, shared),
      conn_(endpoint_, options) {
  for (Bytes& s : scratch_) s.resize(scratch_bytes);
}

Region& Endpoint::region(std::size_t bytes, ddp::Access access, std::uint64_t base_to,
                         std::optional<ddp::StreamKey> owner) {
  const ddp::StreamKey who = owner.value_or(ddp::StreamKey{key_.pd, ddp::StreamId::kAny});
  regions_.push_back(std::make_unique<Region>(stags_, who.pd, bytes, access, base_to, who.stream, random_()));
  return *regions_.back();
}

void Endpoint::start(mpa::Initiator initiator, TimePoint now) {
  conn_.start(std::move(initiator), now);
  check();
}

void Endpoint::start(mpa::Responder responder, TimePoint now) {
  conn_.start(std::move(responder), now);
  check();
}

Bytes Endpoint::send(std::size_t limit, TimePoint now) {
  Bytes out;
  for (const ConstBytes span : conn_.tx_buffers(now)) {
    EXPECT_FALSE(span.empty());
    const std::size_t n = std::min(limit - out.size(), span.size());
    out.insert(out.end(), span.begin(), span.begin() + static_cast<std::ptrdiff_t>(n));
    if (out.size() == limit) break;
  }
  conn_.tx_commit(out.size(), now);
  check();
  return out;
}

std::size_t Endpoint::receive(ConstBytes bytes, TimePoint now) {
  // What an earlier call left in scratch must never be looked at again: two areas take turns, and the used part is
  // overwritten.
  Bytes& scratch = scratch_[turn_++ % 2];
  std::size_t taken = 0;
  for (const MutBytes span : conn_.rx_buffers(scratch)) {
    const std::size_t n = std::min(span.size(), bytes.size() - taken);
    if (n == 0) continue;
    std::memcpy(span.data(), bytes.data() + taken, n);
    taken += n;
  }
  conn_.rx_commit(taken, now);
  std::fill_n(scratch.begin(), std::min(scratch.size(), taken), std::byte{0xEE});
  check();
  return taken;
}

void Endpoint::end(stream::TcpEnd how, TimePoint now) {
  conn_.rx_end(how, now);
  check();
}

void Endpoint::expire(TimePoint now) {
  conn_.on_deadline(now);
  check();
}

void Endpoint::disconnect(TimePoint now) {
  conn_.disconnect(now);
  check();
}

void Endpoint::check() {
  EXPECT_TRUE(conn_.is_consistent()) << "in " << stream::name(conn_.phase());
  collect();
}

void Endpoint::collect() {
  while (auto e = conn_.poll_event()) events.push_back(std::move(*e));
  while (const auto c = conn_.poll_send()) sends.push_back(*c);
  while (const auto c = conn_.poll_recv()) recvs.push_back(*c);
}

const stream::Established* Endpoint::established() const {
  for (const auto& e : events) {
    if (const auto* found = std::get_if<stream::Established>(&e)) return found;
  }
  return nullptr;
}

const stream::Disconnected* Endpoint::disconnected() const {
  for (const auto& e : events) {
    if (const auto* found = std::get_if<stream::Disconnected>(&e)) return found;
  }
  return nullptr;
}

std::string Endpoint::log() const {
  std::ostringstream out;
  for (const auto& c : sends) out << "send " << c.wr_id << " " << name(c.status) << " " << c.byte_len << "\n";
  for (const auto& c : recvs) {
    out << "recv " << c.wr_id << " " << name(c.status) << " " << c.byte_len << (c.solicited ? " solicited" : "");
    if (c.invalidated) out << " invalidated " << raw(c.invalidated_stag);
    out << "\n";
  }
  for (const auto& e : events) {
    if (const auto* up = std::get_if<stream::Established>(&e)) {
      out << "established " << up->negotiated.to_string() << " private " << to_hex(up->private_data) << "\n";
      continue;
    }
    if (const auto* other = std::get_if<stream::FallBack>(&e)) {
      out << (other->to == mpa::Fallback::kPeerToPeer ? "fall back to peer-to-peer\n" : "fall back to revision 1\n");
      continue;
    }
    const auto& down = std::get<stream::Disconnected>(e);
    out << "disconnected " << name(down.reason.code) << (down.was_established ? "" : " never established");
    if (down.sent) out << " sent " << down.sent->to_string();
    if (down.received) out << " received " << down.received->to_string();
    out << "\n";
  }
  return out.str();
}

void Endpoint::post(const rdmap::SendWr& wr) {
  const auto ok = conn_.post_send(wr);
  EXPECT_TRUE(ok.ok()) << name(ok.error().code);
}

void Endpoint::post(const rdmap::RecvWr& wr) {
  const auto ok = conn_.post_recv(wr);
  EXPECT_TRUE(ok.ok()) << name(ok.error().code);
}

}  // namespace iwarp::test
