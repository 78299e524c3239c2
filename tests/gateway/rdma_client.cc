#include "tests/gateway/rdma_client.h"

#include <array>

#include "iwarp/rpcrdma/private_data.h"

namespace iwarp::gateway::test {
namespace {

constexpr std::size_t kReceiveBytes = 8192;

verbs::QueuePair::Options qp_options(verbs::CompletionQueue& cq, std::size_t receives) {
  stream::Options s;
  s.sq_depth = 2048;
  s.rq_depth = receives;
  return {.send_cq = &cq, .recv_cq = &cq, .stream = s};
}

}  // namespace

RdmaClient::RdmaClient(Loop& loop, cm::Engine& engine) : RdmaClient(loop, engine, Options{}) {}

RdmaClient::RdmaClient(Loop& loop, cm::Engine& engine, Options options)
    : loop_(loop),
      engine_(engine),
      options_(std::move(options)),
      qp_(std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine.context()),
                                             qp_options(cq_, options_.receives))),
      receive_memory_(options_.receives * kReceiveBytes),
      receive_region_(verbs::MemoryRegion::register_memory(qp_->pd(), receive_memory_, {}).value()),
      poller_(loop.add([this] { poll(); })) {
  for (std::size_t i = 0; i < options_.receives; ++i) post_receive(i);
}

RdmaClient::~RdmaClient() {
  loop_.remove(poller_);
  if (connecting_) (void)loop_.until([&] { return decided(); });  // the queue pair uses our completion queue
  if (connection_ && !closed()) connection_->abort();
}

void RdmaClient::post_receive(std::size_t slot) {
  const verbs::Sge into{receive_memory_.data() + slot * kReceiveBytes, kReceiveBytes, receive_region_.stag()};
  (void)qp_->post_recv({.wr_id = slot, .sges = into});
}

void RdmaClient::begin_connect(const boost::asio::ip::tcp::endpoint& to) {
  connecting_ = true;
  cm::ConnectOptions o;
  o.host = to.address().to_string();
  o.port = to.port();
  o.policy = options_.policy;
  if (options_.source) o.local = boost::asio::ip::tcp::endpoint(*options_.source, 0);
  if (options_.announce) {
    const auto pd = rpcrdma::PrivateData{true, 4096, 4096}.encode();
    o.private_data.assign(pd.begin(), pd.end());
  }
  cm::connect(engine_, qp_, o, [this](const Error& error, std::shared_ptr<cm::Connection> c) {
    connection_ = std::move(c);
    error_ = error;
  });
}

bool RdmaClient::connect(const boost::asio::ip::tcp::endpoint& to) {
  begin_connect(to);
  return loop_.until([&] { return decided(); }) && error_->code == Errc::kOk;
}

void RdmaClient::register_memory(Exposed& into, MutBytes memory, ddp::Access access) {
  verbs::MemoryRegion::Options o;
  o.access = access | ddp::Access::kRemoteInvalidate;
  o.base_to = 0x1000;
  o.stream = qp_->stream();
  into.region = verbs::MemoryRegion::register_memory(qp_->pd(), memory, o).value();
  into.segment = {into.region.stag(), static_cast<std::uint32_t>(memory.size()), 0x1000};
}

std::shared_ptr<Exposed> RdmaClient::expose(Bytes content, ddp::Access access) {
  auto out = std::make_shared<Exposed>();
  out->memory = std::move(content);
  register_memory(*out, out->memory, access);
  return out;
}

std::shared_ptr<Exposed> RdmaClient::expose_again(const std::shared_ptr<Exposed>& other) {
  auto out = std::make_shared<Exposed>();
  out->same_memory_as = other;
  register_memory(*out, other->memory, ddp::Access::kRemoteRead);
  return out;
}

void RdmaClient::send(const Bytes& message) {
  auto source = expose(message, ddp::Access::kLocalRead);
  verbs::SendWr wr;
  wr.wr_id = next_send_++;
  wr.sges = verbs::Sge{source->memory.data(), static_cast<std::uint32_t>(source->memory.size()), source->region.stag()};
  sending_[wr.wr_id] = std::move(source);
  (void)qp_->post_send(wr);  // flushed after the end: closed() tells
}

void RdmaClient::call(const Bytes& rpc) {
  send(rpcrdma::test::header(load_be<std::uint32_t>(rpc), rpcrdma::Proc::kMsg, 32), rpc);
}

void RdmaClient::poll() {
  std::array<verbs::Completion, 32> batch;
  while (const std::size_t n = cq_.poll(batch)) {
    for (std::size_t i = 0; i < n; ++i) {
      const verbs::Completion& c = batch[i];
      if (c.op != verbs::WcOp::kRecv) {
        sending_.erase(c.wr_id);
        continue;
      }
      if (c.status != Errc::kOk) continue;
      const auto from = receive_memory_.begin() + static_cast<std::ptrdiff_t>(c.wr_id * kReceiveBytes);
      inbox.emplace_back(from, from + c.byte_len);
      if (c.invalidated) invalidated.push_back(c.invalidated_stag);
      post_receive(c.wr_id);
    }
  }
}

std::optional<Decoded> RdmaClient::take(std::uint32_t xid) {
  for (auto it = inbox.begin(); it != inbox.end(); ++it) {
    if (it->size() < 4 || load_be<std::uint32_t>(*it) != xid) continue;
    auto out = rpcrdma::test::decode(*it);
    inbox.erase(it);
    return out;
  }
  return std::nullopt;
}

Decoded RdmaClient::await(std::uint32_t xid) {
  std::optional<Decoded> got;
  const bool came = loop_.until([&] { return (got = take(xid)).has_value() || closed(); });
  EXPECT_TRUE(came && got) << "no answer to xid " << xid
                           << (closed() ? ": " + cm::describe_end(*connection_, *connection_->disconnected()) : "");
  return got.value_or(Decoded{});
}

bool RdmaClient::closed() const {
  return connection_ && connection_->disconnected().has_value();
}

}  // namespace iwarp::gateway::test
