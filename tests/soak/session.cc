#include "tests/soak/session.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "iwarp/base/wire.h"

namespace iwarp::soak {
namespace {

constexpr std::size_t kReceiveBytes = End::kReceives * End::kMessageBytes;
constexpr std::size_t kTargetAt = kReceiveBytes, kSinkAt = kTargetAt + Source::kBytes;
constexpr std::size_t kMemoryBytes = kSinkAt + Source::kBytes;

verbs::MemoryRegion register_memory(const verbs::ProtectionDomain& pd, MutBytes memory) {
  verbs::MemoryRegion::Options o;
  o.access = ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite | ddp::Access::kRemoteRead;
  auto made = verbs::MemoryRegion::register_memory(pd, memory, o);
  if (!made) give_up("memory was not registered", made.error().why);
  return std::move(made).value();
}

std::shared_ptr<verbs::QueuePair> make_qp(const verbs::ProtectionDomain& pd, verbs::CompletionQueue& cq) {
  verbs::QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq;
  o.stream.sq_depth = End::kSends;
  o.stream.rq_depth = End::kReceives;
  return std::make_shared<verbs::QueuePair>(pd, o);
}

// One of what is left, if there is any.
bool take(std::atomic<int>& left) {
  int n = left.load();
  while (n > 0 && !left.compare_exchange_weak(n, n - 1)) {
  }
  return n > 0;
}

// How a connection that nobody harms can end here.
bool ordinary(Errc code) {
  return code == Errc::kAborted || code == Errc::kPeerClosed || code == Errc::kConnectionLost ||
         code == Errc::kPeerRejected;
}

}  // namespace

void give_up(const char* what, const char* detail) {
  std::fflush(stdout);
  std::fprintf(stderr, "soak: %s %s\n", what, detail);
  std::_Exit(1);
}

Source::Source(cm::Engine& engine) : pd(engine.context()), bytes(kBytes) {
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(i * 7 & 0xFF);
  region = register_memory(pd, bytes);
}

// --- End

End::End(cm::Engine& engine, const Source& source, Totals& totals)
    : source_(source),
      totals_(totals),
      memory_(kMemoryBytes),
      region_(register_memory(source.pd, memory_)),
      cq_(kSends + kReceives, &engine),
      qp_(make_qp(source.pd, cq_)),
      states_(kRequests),
      slices_(kRequests) {}

End::~End() {
  qp_->abort();
}

void End::meet(End& peer) {
  peer_ = &peer;
  for (std::size_t i = 0; i < kReceives; ++i) post_recv(i);
}

std::optional<std::uint64_t> End::take_id() {
  const std::uint64_t id = next_id_.fetch_add(1);
  if (id >= kRequests) return std::nullopt;
  states_[id].store(kPosted);  // before the post: its completion may overtake us
  return id;
}

void End::post_recv(std::size_t slice) {
  const auto id = take_id();
  if (!id) return;
  slices_[*id].store(static_cast<std::uint8_t>(slice));
  const verbs::Sge sge{memory_.data() + slice * kMessageBytes, kMessageBytes, region_.stag()};
  if (!qp_->post_recv({.wr_id = *id, .sges = sge})) {
    states_[*id].store(kFree);
    return;
  }
  peer_->credits_.fetch_add(1);
}

bool End::post(std::mt19937& random) {
  if (!take(room_)) return false;
  const auto dice = static_cast<std::uint32_t>(random());
  const bool send = (dice >> 4 & 63) != 0;
  if (send && !take(credits_)) {
    room_.fetch_add(1);
    return false;
  }
  const auto length = static_cast<std::uint32_t>(dice % 16 == 0 ? (dice >> 8) % (kMessageBytes + 1) : (dice >> 8) % 64);
  const bool posted = post(send                    ? verbs::SendOp::kSend
                           : (dice >> 10 & 1) != 0 ? verbs::SendOp::kWrite
                                                   : verbs::SendOp::kRead,
                           length);
  if (!posted) room_.fetch_add(1);
  if (!posted && send) credits_.fetch_add(1);
  return posted;
}

bool End::post(verbs::SendOp op, std::uint32_t length) {
  const auto id = take_id();
  if (!id) return false;
  verbs::SendWr wr;
  wr.wr_id = *id;
  wr.op = op;
  if (op == verbs::SendOp::kRead) {
    wr.sges = verbs::Sge{memory_.data() + kSinkAt, length, region_.stag()};
    wr.remote_stag = peer_->source_.region.stag();
    wr.remote_to = peer_->source_.region.base_to();
  } else {
    wr.sges = verbs::Sge{source_.region.memory().data(), length, source_.region.stag()};
    wr.remote_stag = peer_->region_.stag();
    wr.remote_to = peer_->region_.base_to() + kTargetAt;
  }
  if (qp_->post_send(wr).ok()) return true;
  states_[*id].store(kFree);
  return false;
}

std::size_t End::poll() {
  verbs::Completion batch[16];
  const std::size_t n = cq_.poll(batch);
  for (std::size_t i = 0; i < n; ++i) completed(batch[i]);
  return n;
}

void End::completed(const verbs::Completion& c) {
  if (c.wr_id >= kRequests || states_[c.wr_id].exchange(kCompleted) != kPosted) give_up("a request completed twice");
  if (c.op != verbs::WcOp::kRecv) room_.fetch_add(1);
  if (c.status != Errc::kOk) {
    if (c.status != Errc::kFlushed) give_up("a request failed:", name(c.status));
    totals_.flushed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (c.op != verbs::WcOp::kRecv) {
    totals_.messages.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::size_t slice = slices_[c.wr_id].load();
  if (std::memcmp(memory_.data() + slice * kMessageBytes, peer_->source_.bytes.data(), c.byte_len) != 0) {
    give_up("a message arrived changed");
  }
  post_recv(slice);
}

void End::finish() {
  qp_->abort();
  while (poll() > 0) {
  }
  for (const auto& state : states_) {
    if (state.load() == kPosted) give_up("a request never completed");
  }
}

// --- Session

Session::Session(cm::Engine& client_engine, const Source& client_source, cm::Engine& server_engine,
                 const Source& server_source, Totals& totals)
    : client(client_engine, client_source, totals), server(server_engine, server_source, totals), totals_(totals) {
  totals_.alive.fetch_add(1);
  client.meet(server);
  server.meet(client);
}

Session::~Session() {
  // Both ends before their memory goes, so that neither reaches for the other's.
  client.finish();
  server.finish();
  totals_.sessions.fetch_add(1);
  totals_.alive.fetch_sub(1);
}

void Session::connect(llp::LowerLayer& lower, std::uint16_t port, std::uint64_t id) {
  hasty_ = id % 4 == 0;
  cm::ConnectOptions o;
  o.host = "127.0.0.1";
  o.port = port;
  o.private_data.resize(sizeof id);
  store_be<std::uint64_t>(o.private_data, id);
  lower.connect(client.qp(), o, [self = shared_from_this()](const Error& error, const Handle& connection) {
    self->established(self->client_connection_, error, connection);
  });
}

void Session::accept(llp::ConnectRequest& request) {
  request.accept(server.qp(), {}, [self = shared_from_this()](const Error& error, const Handle& connection) {
    self->established(self->server_connection_, error, connection);
  });
}

void Session::established(Handle& slot, const Error& error, const Handle& connection) {
  if (error.code != Errc::kOk) {
    // The session may have been ended before it began; then this queue pair was aborted.
    if (!ordinary(error.code) && error.code != Errc::kInvalidArgument) give_up("no connection:", error.why);
    const std::lock_guard lock(mu_);
    failed_ = true;
    return;
  }
  totals_.established.fetch_add(1);
  const std::lock_guard lock(mu_);
  slot = connection;
}

Session::Handle Session::get(const Handle& slot) {
  const std::lock_guard lock(mu_);
  return slot;
}

void Session::until_over(const Handle& connection) {
  if (connection == nullptr) return;
  connection->async_wait_disconnected([self = shared_from_this()](const stream::Disconnected& how) {
    if (!ordinary(how.reason.code)) give_up("a connection ended:", how.reason.why);
  });
}

bool Session::may_end() {
  const std::lock_guard lock(mu_);
  return hasty_ || failed_ || (client_connection_ != nullptr && server_connection_ != nullptr);
}

void Session::end(std::mt19937& random) {
  const Handle near = get(client_connection_), far = get(server_connection_);
  until_over(near);
  until_over(far);
  const bool at_client = random() % 2 == 0;
  const Handle& one = at_client ? near : far;
  const auto how = static_cast<std::uint32_t>(random() % 4);
  if (one == nullptr || how == 0) {
    (at_client ? client : server).qp()->abort();
  } else if (how == 1) {
    one->abort();
  } else {
    one->disconnect();
  }
}

}  // namespace iwarp::soak
