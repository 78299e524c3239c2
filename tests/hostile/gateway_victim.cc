#include "tests/hostile/gateway_victim.h"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <future>

#include "iwarp/gateway/rdma_front.h"
#include "iwarp/gateway/tcp_front.h"
#include "tests/hostile/rpc_talk.h"
#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::hostile {
namespace {

using namespace std::chrono_literals;
using gateway::test::TcpPeer;
using iwarp::test::Bytes;
namespace samples = rpcrdma::test;

const boost::asio::ip::tcp::endpoint kAnyPort{boost::asio::ip::address_v4::loopback(), 0};

// What a file server behind the gateway finds: a WRITE whose data end before their count says so is broken.
bool arguments_fit(const Bytes& call) {
  const std::size_t head = samples::write_call_head(0, 0).size();
  const auto rpc = rpcrdma::RpcCall::parse(call);
  if (!rpc || rpc->gss || rpc->program != samples::kNfs || rpc->procedure != 7) return true;
  return call.size() >= head && load_be<std::uint32_t>(ConstBytes(call).subspan(head - 4)) <= call.size() - head;
}
Bytes garbage_args(const Bytes& call) {
  const auto reply = rpcrdma::make_error_reply(load_be<std::uint32_t>(call), rpcrdma::AcceptStat::kGarbageArgs);
  return {reply.begin(), reply.end()};
}

// The next Call follows each Reply. What else comes, as Calls of the back channel, is left alone.
void call_for_ever(TcpPeer& client) {
  client.on_record = [xid = std::uint32_t{1}](TcpPeer& from, const Bytes& record) mutable {
    const auto reply = rpcrdma::RpcReply::parse(record);
    if (reply && reply->xid == xid) from.send(requester_call(++xid));
  };
  client.start();
  client.send(requester_call(1));
}

// Of the RDMA front, in the order of its listeners.
constexpr std::array kFlavours = {Flavour::kDefault, Flavour::kVersion2, Flavour::kDraft2005, Flavour::kImpatient2005};

template <class Front>
std::unique_ptr<gateway::Front> listening(cm::Engine& engine, const gateway::HostPort& server, Flavour flavour) {
  gateway::Options options;
  options.rpcrdma_version = flavour == Flavour::kVersion2 ? 2 : 1;
  options.draft_2005.enabled = flavour == Flavour::kDraft2005 || flavour == Flavour::kImpatient2005;
  options.draft_2005.align = 512;
  if (flavour == Flavour::kImpatient2005) options.draft_2005.done.patience = 50ms;
  options.insecure_ports = true;  // as the clients here come from any
  auto front = Front::open(engine, kAnyPort, server, options);
  if (!front) throw std::runtime_error(front.error().why);
  return std::move(*front);
}

}  // namespace

GatewayVictim::GatewayVictim() {
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("gateway", std::make_shared<spdlog::sinks::null_sink_mt>()));
}

void GatewayVictim::start() {
  thread_ = std::jthread([this] { loop_.io.run(); });
}

void GatewayVictim::stop(const std::function<void()>& first) {
  work_.reset();
  loop_.io.stop();
  thread_.join();
  first();
  fronts_.clear();
  loop_.io.restart();
  loop_.io.run_for(1ms);
}

std::size_t GatewayVictim::living() {
  std::promise<std::size_t> count;
  boost::asio::post(loop_.io, [&] {
    std::size_t n = 0;
    for (const auto& front : fronts_) n += static_cast<std::size_t>(front->snapshot().active());
    count.set_value(n);
  });
  return count.get_future().get();
}

RdmaFrontVictim::RdmaFrontVictim() {
  server_.keep_calls = false;
  server_.on_call = [](TcpPeer& from, const Bytes& call) {
    from.send(arguments_fit(call) ? gateway::test::serve(call) : garbage_args(call));
  };
  for (const Flavour flavour : kFlavours) {
    fronts_.push_back(listening<gateway::RdmaFront>(engine_, server_.host_port(), flavour));
  }
  start();
}

RdmaFrontVictim::~RdmaFrontVictim() {
  stop([this] { server_.shut_down(); });
}

test::RawTcp RdmaFrontVictim::dial(Flavour flavour) {
  const auto* const at = std::find(kFlavours.begin(), kFlavours.end(), flavour);
  if (at == kFlavours.end()) throw Inapplicable("no listener of that flavour");
  return test::RawTcp::connect(fronts_[static_cast<std::size_t>(at - kFlavours.begin())]->local().port());
}

test::RawTcp RdmaFrontVictim::hook(Flavour) {
  throw Inapplicable("this front of the gateway only listens");
}

TcpFrontVictim::TcpFrontVictim() {
  fronts_.push_back(listening<gateway::TcpFront>(engine_, {"127.0.0.1", hooks_.port()}, Flavour::kDefault));
  start();
}

TcpFrontVictim::~TcpFrontVictim() {
  stop([this] { clients_.clear(); });
}

test::RawTcp TcpFrontVictim::dial(Flavour) {
  throw Inapplicable("this front of the gateway only connects");
}

test::RawTcp TcpFrontVictim::hook(Flavour flavour) {
  const bool fresh = flavour == Flavour::kVersion2 || flavour == Flavour::kDraft2005;
  if (!fresh && flavour != Flavour::kDefault && flavour != Flavour::kBackwardChunks)
    throw Inapplicable("no requester of that flavour");
  boost::asio::post(loop_.io, [this, flavour, fresh] {
    if (fresh) fronts_.push_back(listening<gateway::TcpFront>(engine_, {"127.0.0.1", hooks_.port()}, flavour));
    gateway::Front& front = fresh ? *fronts_.back() : *fronts_.front();
    std::erase_if(clients_, [](const auto& client) { return client->ended(); });
    gateway::test::tcp::socket socket(loop_.io);
    socket.connect(front.local());
    clients_.push_back(std::make_shared<TcpPeer>(std::move(socket)));
    call_for_ever(*clients_.back());
  });
  return hooks_.accept();
}

}  // namespace iwarp::hostile
