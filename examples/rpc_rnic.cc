// RPC over a device of rdma-core, such as an RNIC or siw: `rpc_rnic DEVICE serve ADDRESS PORT` serves program
// 0x20000044, version 1, until it is interrupted; `rpc_rnic DEVICE call ADDRESS PORT` calls it. Procedure 1 adds two
// unsigned numbers; procedure 2 reverses the octets of an opaque<>, which travels in chunks of its own both ways:
// declare(). Without a device: `iwarp run -- rpc_rnic iwarp0 ...`.
#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/lexical_cast.hpp>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/client.h"
#include "iwarp/rpc/device_transport.h"
#include "iwarp/rpc/server.h"

namespace rpc = iwarp::rpc;
using iwarp::rpcrdma::AcceptStat;
using iwarp::rpcrdma::BulkItem;

constexpr rpc::Procedure kAdd{0x20000044, 1, 1}, kReverse{0x20000044, 1, 2};
constexpr std::size_t kBulk = 1u << 20;  // octets

// Where the bulk data are: the only argument, and the only result.
std::shared_ptr<const iwarp::rpcrdma::DeclaredBinding> declare() {
  auto binding = std::make_shared<iwarp::rpcrdma::DeclaredBinding>();
  for (const auto where : {BulkItem::Where::kArguments, BulkItem::Where::kResults}) {
    binding->add({.program = kReverse.program, .version = 1, .procedure = 2, .where = where, .max_bytes = kBulk})
        .value();
  }
  return binding;
}

boost::asio::awaitable<rpc::Answer> handle(rpc::Call call) {
  iwarp::ReadCursor in(call.arguments());
  const auto first = in.be<std::uint32_t>();
  if (call.procedure() == kAdd.procedure) {
    const auto second = in.be<std::uint32_t>();
    if (!in.ok()) co_return AcceptStat::kGarbageArgs;
    rpc::Octets sum(4);
    iwarp::store_be(std::span(sum), first + second);
    co_return sum;
  }
  if (call.procedure() != kReverse.procedure) co_return AcceptStat::kProcUnavail;
  const auto data = in.take(first);
  if (!in.ok() || first % 4 != 0) co_return AcceptStat::kGarbageArgs;
  rpc::Octets results(4 + first);
  iwarp::store_be(std::span(results).first(4), first);
  std::reverse_copy(data.begin(), data.end(), results.begin() + 4);
  co_return results;
}

void serve(iwarp::cm::Engine& engine, const std::shared_ptr<rpc::RdmaDevice>& device,
           const boost::asio::ip::tcp::endpoint& at) {
  rpc::ServerOptions options{.threads = 4};
  options.responder.declared = declare();
  rpc::Server server(engine, options);
  server.serve(kAdd.program, 1, handle);
  boost::asio::signal_set signals(engine.get_executor(), SIGINT, SIGTERM);
  const auto listener = rpc::on_device(device, {.endpoint = at});
  server.listen(listener).value();
  std::printf("listening at port %u of %s\n", listener->local().port(), device->name().c_str());
  std::fflush(stdout);
  signals.async_wait(boost::asio::use_future).get();
  server.stop();
  std::printf("%llu Calls on %llu connections\n", static_cast<unsigned long long>(server.stats().calls),
              static_cast<unsigned long long>(server.stats().connections));
}

void call(iwarp::cm::Engine& engine, const std::shared_ptr<rpc::RdmaDevice>& device, const std::string& host,
          std::uint16_t port) {
  rpc::ClientOptions options;
  options.requester.declared = declare();
  rpc::Client client(engine, rpc::over_device(device, {.host = host, .port = port}), options);
  std::vector<std::future<rpc::Reply>> sums;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    rpc::Octets arguments(8);
    iwarp::store_be(std::span(arguments).first(4), i);
    iwarp::store_be(std::span(arguments).last(4), i);
    sums.push_back(client.async_call(kAdd, std::move(arguments), {}, boost::asio::use_future));
  }
  std::uint64_t total = 0;
  for (auto& sum : sums) total += iwarp::load_be<std::uint32_t>(sum.get().results().first(4));

  rpc::Octets bulk(4 + kBulk);
  iwarp::store_be(std::span(bulk).first(4), static_cast<std::uint32_t>(kBulk));
  for (std::size_t i = 0; i < kBulk; ++i) bulk[4 + i] = static_cast<std::byte>(i * 7 >> 3);
  const rpc::Reply reversed = client.call(kReverse, bulk).value();
  const bool right = reversed.success() && reversed.results().size() == bulk.size() &&
                     std::equal(bulk.begin() + 4, bulk.end(), reversed.results().rbegin());
  std::printf("1000 sums make %llu; %zu octets came back %s\n", static_cast<unsigned long long>(total), kBulk,
              right ? "reversed" : "wrong");
}

int main(int argc, char** argv) try {
  if (argc != 5) throw std::runtime_error("usage: rpc_rnic DEVICE serve|call ADDRESS PORT");
  const std::string role = argv[2], host = argv[3];
  const auto port = boost::lexical_cast<std::uint16_t>(argv[4]);
  iwarp::cm::Engine engine;
  const auto opened = rpc::open_device(engine, argv[1]);
  if (!opened.device) throw std::runtime_error(opened.error);
  if (role == "serve") {
    serve(engine, opened.device, {boost::asio::ip::make_address(host), port});
  } else {
    call(engine, opened.device, host, port);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "rpc_rnic: %s\n", e.what());
  return 1;
}
