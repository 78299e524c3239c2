#include "tests/faults/conversation.h"

#include "tests/faults/party.h"

namespace iwarp::faults {
namespace {

using namespace std::chrono_literals;
using verbs::SendOp;

struct Step {
  bool by_client;
  SendOp op;
  std::size_t bytes;  // some in one segment, some in several, some padded
};
// A Write is followed by a Send of the same side: when that has arrived, the Write has.
constexpr Step kSteps[] = {
    {true, SendOp::kSend, 100},   {false, SendOp::kSend, 2501}, {true, SendOp::kWrite, 4002},
    {true, SendOp::kSend, 1},     {false, SendOp::kRead, 3000}, {true, SendOp::kRead, 5003},
    {false, SendOp::kWrite, 999}, {false, SendOp::kSend, 64},   {true, SendOp::kSend, 1600},
};

constexpr std::size_t kAtATime = 8;

std::size_t offset_of(const Step& step) {
  std::size_t at = 0;
  for (const Step* s = kSteps; s != &step; ++s) at += s->bytes;
  return at;
}

std::vector<std::pair<std::size_t, std::size_t>> receives(bool of_client) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (const Step& s : kSteps) {
    if (s.op == SendOp::kSend && s.by_client != of_client) out.emplace_back(offset_of(s), s.bytes);
  }
  return out;
}

// `to` has in [offset, offset + bytes) what `from` has there.
void expect_arrived(const Party& from, const Party& to, const Step& step) {
  const auto range = [&](const test::Bytes& b) { return ConstBytes(b).subspan(offset_of(step), step.bytes); };
  EXPECT_TRUE(std::ranges::equal(range(from.node.out), range(to.node.in)))
      << "step " << &step - kSteps << " succeeded, and its data is wrong";
}

bool say(Party& speaker, Party& listener, const Step& step, std::chrono::milliseconds patience) {
  if (!speaker.post(step.op, offset_of(step), step.bytes, listener) || !speaker.await_post(patience)) return false;
  switch (step.op) {
    case SendOp::kSend:
      if (!listener.await_message(patience)) return false;
      expect_arrived(speaker, listener, step);
      if (const Step& before = (&step)[-1]; &step != kSteps && before.op == SendOp::kWrite)
        expect_arrived(speaker, listener, before);
      return true;
    case SendOp::kRead:
      expect_arrived(listener, speaker, step);
      return true;
    default:
      return true;
  }
}

bool say_all(Party& client, Party& server, std::chrono::milliseconds patience) {
  return std::ranges::all_of(kSteps, [&](const Step& step) {
    return step.by_client ? say(client, server, step, patience) : say(server, client, step, patience);
  });
}

// Both ends have been told, and why.
stream::Disconnected end_of(const test::Outcome& side) {
  stream::Disconnected how;
  how.reason = side.error;
  if (side.connection != nullptr) how = test::ending(*side.connection);
  EXPECT_NE(how.reason.code, Errc::kOk);
  EXPECT_STRNE(how.reason.why, "");
  return how;
}

// The server's half of the startup. kNotConnected when the listener turned the peer away.
test::Outcome accept(cm::Listener& listener, Party& server) {
  auto requested = listener.async_accept(cm::as_error(boost::asio::use_future));
  const bool came = test::eventually(
      [&] { return requested.wait_for(0ms) == std::future_status::ready || listener.failed_startups() > 0; });
  EXPECT_TRUE(came) << "the listener waits for ever";
  if (requested.wait_for(0ms) != std::future_status::ready) {
    server.node.qp->abort();
    return {make_error(Errc::kNotConnected, "no valid Request came"), nullptr};
  }
  auto [error, request] = requested.get();
  if (error.code != Errc::kOk) return {error, nullptr};
  return test::get_outcome(
      request->async_accept(server.node.qp, {.mpa = server.node.mpa}, cm::as_error(boost::asio::use_future)));
}

}  // namespace

std::string Outcome::to_string() const {
  return std::string("client: start ") + name(client_start.code) + ", end " + name(client_end.reason.code) + " (" +
         client_end.reason.why + "); server: start " + name(server_start.code) + ", end " +
         name(server_end.reason.code) + " (" + server_end.reason.why + ")" + (gave_up ? "; gave up" : "");
}

Outcome Conversations::hold(const Settings& settings) {
  Outcome out;
  std::weak_ptr<void> left[4];
  {
    Party server(server_engine_, settings.stream, receives(false));
    Party client(client_engine_, settings.stream, receives(true));
    const auto listener = test::listen(server_engine_, {.policy = settings.server_policy});
    relay_.set(settings.plan);
    relay_.set_target(listener->local().port());
    auto connecting = test::start_connect(client.node, test::to_port(relay_.port(), settings.client_policy));
    const test::Outcome at_server = accept(*listener, server);
    const test::Outcome at_client = test::get_outcome(std::move(connecting));
    out.client_start = at_client.error;
    out.server_start = at_server.error;
    const bool established = at_client.error.code == Errc::kOk && at_server.error.code == Errc::kOk;
    out.complete = established && say_all(client, server, settings.patience);
    out.gave_up = client.gave_up() || server.gave_up();
    // What is broken ends by itself, in time.
    if (at_client.connection != nullptr && (out.complete || out.gave_up)) at_client.connection->disconnect();
    if (at_server.connection != nullptr && out.gave_up) at_server.connection->disconnect();
    out.client_end = end_of(at_client);
    out.server_end = end_of(at_server);
    client.check_at_end(server);
    server.check_at_end(client);
    left[0] = at_client.connection;
    left[1] = at_server.connection;
    left[2] = client.node.qp;
    left[3] = server.node.qp;
  }
  const auto freed = [&] { return std::ranges::all_of(left, [](const auto& object) { return object.expired(); }); };
  EXPECT_TRUE(test::eventually(freed)) << "a connection or a queue pair is kept after its end";
  out.record = relay_.record();
  relay_.reset_all();
  return out;
}

Relay::Record Conversations::undisturbed() {
  const Outcome out = hold({});
  EXPECT_TRUE(out.complete) << out.to_string();
  return out.record;
}

void hold_all(const std::vector<Case>& cases, const std::function<void(const Case&, const Outcome&)>& check) {
  ASSERT_FALSE(cases.empty());
  const std::size_t descriptors = test::open_descriptors(), threads = test::threads();
  {
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> workers;
    for (std::size_t n = std::min(kAtATime, cases.size()); n > 0; --n) {
      workers.emplace_back([&] {
        Conversations conversations;
        for (std::size_t i = next++; i < cases.size(); i = next++) {
          SCOPED_TRACE(cases[i].name);
          const Outcome out = conversations.hold(cases[i].settings);
          SCOPED_TRACE(out.to_string());
          check(cases[i], out);
        }
      });
    }
  }
  EXPECT_TRUE(test::eventually([&] { return test::open_descriptors() == descriptors; }))
      << test::open_descriptors() << " descriptors after all, " << descriptors << " before";
  EXPECT_TRUE(test::eventually([&] { return test::threads() == threads; }));
}

Settings impatient() {
  Settings s;
  s.client_policy.startup_timeout = s.server_policy.startup_timeout = 300ms;
  s.stream.first_fpdu_timeout = s.stream.close_timeout = s.stream.drain_timeout = 300ms;
  s.patience = 200ms;
  return s;
}

}  // namespace iwarp::faults
