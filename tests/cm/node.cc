#include "tests/cm/node.h"

#include <filesystem>

namespace iwarp::test {
namespace {

verbs::MemoryRegion region(const verbs::ProtectionDomain& pd, MutBytes memory, ddp::Access access) {
  verbs::MemoryRegion::Options o;
  o.access = access;
  auto made = verbs::MemoryRegion::register_memory(pd, memory, o);
  if (!made) throw std::runtime_error(made.error().why);
  return std::move(made).value();
}

std::shared_ptr<verbs::QueuePair> make_qp(const verbs::ProtectionDomain& pd, verbs::CompletionQueue& cq,
                                          const stream::Options& options) {
  verbs::QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq;
  o.stream = options;
  return std::make_shared<verbs::QueuePair>(pd, o);
}

std::size_t entries(const char* directory) {
  std::error_code ec;
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ec)) n += entry.path().empty() ? 0 : 1;
  return n;
}

}  // namespace

Node::Node(cm::Engine& e, const stream::Options& options, std::size_t bytes)
    : engine(e),
      mpa(options),
      pd(e.context()),
      cq(options.sq_depth + options.rq_depth, &e),
      in(bytes),
      out(pattern(bytes, static_cast<unsigned>(pd.id()))),
      in_mr(region(pd, in, ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite | ddp::Access::kRemoteRead)),
      out_mr(region(pd, out, ddp::Access::kLocalWrite | ddp::Access::kRemoteRead)),
      qp(make_qp(pd, cq, options)) {}

Node::~Node() {
  qp->abort();
}

void Node::recv(std::uint64_t id, std::size_t offset, std::size_t length) {
  length = std::min(length, in.size() - offset);
  const verbs::Sge sge{in.data() + offset, static_cast<std::uint32_t>(length), in_mr.stag()};
  const auto ok = qp->post_recv({.wr_id = id, .sges = sge});
  ASSERT_TRUE(ok.ok()) << ok.error().why;
}

void Node::send(std::uint64_t id, std::size_t length, std::size_t offset) {
  const verbs::Sge sge{out.data() + offset, static_cast<std::uint32_t>(length), out_mr.stag()};
  const auto ok = qp->post_send(verbs::SendWr{.wr_id = id, .sges = sge});
  ASSERT_TRUE(ok.ok()) << ok.error().why;
}

void Node::write(std::uint64_t id, const Node& to, std::size_t length) {
  const verbs::Sge sge{out.data(), static_cast<std::uint32_t>(length), out_mr.stag()};
  verbs::SendWr wr{.wr_id = id, .op = verbs::SendOp::kWrite, .sges = sge, .remote_stag = to.in_mr.stag()};
  wr.remote_to = to.in_mr.base_to();
  const auto ok = qp->post_send(wr);
  ASSERT_TRUE(ok.ok()) << ok.error().why;
}

void Node::read(std::uint64_t id, const Node& from, std::size_t length) {
  const verbs::Sge sge{in.data(), static_cast<std::uint32_t>(length), in_mr.stag()};
  verbs::SendWr wr{.wr_id = id, .op = verbs::SendOp::kRead, .sges = sge, .remote_stag = from.out_mr.stag()};
  wr.remote_to = from.out_mr.base_to();
  const auto ok = qp->post_send(wr);
  ASSERT_TRUE(ok.ok()) << ok.error().why;
}

verbs::Completion Node::next() {
  verbs::Completion c;
  if (!cq.wait_for(kPatience)) throw std::runtime_error("completion never came");
  if (cq.poll({&c, 1}) != 1) throw std::runtime_error("another thread took the completion");
  return c;
}

void Node::expect(verbs::WcOp op, std::uint64_t id, Errc status) {
  const verbs::Completion c = next();
  EXPECT_EQ(c.op, op);
  EXPECT_EQ(c.wr_id, id);
  EXPECT_STREQ(name(c.status), name(status));
}

Outcome get_outcome(Connecting result) {
  auto [error, connection] = get(std::move(result));
  return {error, std::move(connection)};
}

std::unique_ptr<cm::Listener> listen(cm::Engine& engine, cm::ListenOptions options) {
  if (options.endpoint.port() == 0 && options.endpoint.address().is_unspecified() &&
      options.endpoint.address().is_v4()) {
    options.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
  }
  auto made = cm::Listener::listen(engine, options);
  if (!made) throw std::runtime_error(made.error().why);
  return std::move(made).value();
}

cm::ConnectOptions to_port(std::uint16_t port, const mpa::Policy& policy) {
  cm::ConnectOptions o;
  o.host = "127.0.0.1";
  o.port = port;
  o.policy = policy;
  return o;
}

cm::ConnectOptions to(const cm::Listener& listener, const mpa::Policy& policy) {
  return to_port(listener.local().port(), policy);
}

Connecting start_connect(Node& node, const cm::ConnectOptions& options) {
  cm::ConnectOptions all = options;
  if (all.mpa == stream::MpaOptions{}) all.mpa = node.mpa;
  return cm::async_connect(node.engine, node.qp, std::move(all), cm::as_error(boost::asio::use_future));
}

std::unique_ptr<cm::ConnectRequest> next_request(cm::Listener& listener) {
  auto [error, request] = get(listener.async_accept(cm::as_error(boost::asio::use_future)));
  if (error.code != Errc::kOk) throw std::runtime_error(error.why);
  return std::move(request);
}

stream::Disconnected ending(cm::Connection& connection) {
  return get(connection.async_wait_disconnected(boost::asio::use_future));
}

Ends join(Node& client, Node& server, cm::Listener& listener, const cm::ConnectOptions& options,
          const cm::ConnectRequest::AcceptOptions& accept) {
  auto connecting = start_connect(client, options);
  const auto request = next_request(listener);
  auto answer = accept;
  if (answer.mpa == stream::MpaOptions{}) answer.mpa = server.mpa;
  auto accepting = request->async_accept(server.qp, std::move(answer), cm::as_error(boost::asio::use_future));
  Ends ends;
  ends.client = get_outcome(std::move(connecting));
  ends.server = get_outcome(std::move(accepting));
  EXPECT_STREQ(name(ends.client.error.code), "ok") << ends.client.error.why;
  EXPECT_STREQ(name(ends.server.error.code), "ok") << ends.server.error.why;
  return ends;
}

void ping_pong(Node& client, Node& server) {
  const std::size_t n = std::min({client.out.size(), server.in.size(), server.out.size(), client.in.size()});
  server.recv(1);
  client.recv(2);
  client.send(3, n);
  client.expect(verbs::WcOp::kSend, 3);
  server.expect(verbs::WcOp::kRecv, 1);
  EXPECT_TRUE(std::equal(client.out.begin(), client.out.begin() + static_cast<std::ptrdiff_t>(n), server.in.begin()));
  server.send(4, n);
  server.expect(verbs::WcOp::kSend, 4);
  client.expect(verbs::WcOp::kRecv, 2);
  EXPECT_TRUE(std::equal(server.out.begin(), server.out.begin() + static_cast<std::ptrdiff_t>(n), client.in.begin()));
}

std::size_t open_descriptors() {
  return entries("/proc/self/fd");
}
std::size_t threads() {
  return entries("/proc/self/task");
}

}  // namespace iwarp::test
