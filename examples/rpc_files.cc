// A store of files over RPC-over-RDMA: a server with four threads, and a client that puts a file of 1 MiB and gets it
// back, both in this process. Program 0x20000043, version 1: procedure 1, PUT, takes a name and an opaque<>; procedure
// 2, GET, takes a name and returns a status and an opaque<>. The two opaques travel in chunks of their own: declare().
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/client.h"
#include "iwarp/rpc/iwarp_transport.h"
#include "iwarp/rpc/registered_memory.h"
#include "iwarp/rpc/server.h"

namespace rpc = iwarp::rpc;
using boost::asio::awaitable;
using iwarp::rpcrdma::AcceptStat;
using iwarp::rpcrdma::BulkItem;

constexpr rpc::Procedure kPut{0x20000043, 1, 1}, kGet{0x20000043, 1, 2};

// Where the bulk data are: behind the name, a number, and its own count word; behind the status, where that is 0.
std::shared_ptr<const iwarp::rpcrdma::DeclaredBinding> declare() {
  auto binding = std::make_shared<iwarp::rpcrdma::DeclaredBinding>();
  binding->add({.program = kPut.program, .version = 1, .procedure = kPut.procedure, .offset = 4}).value();
  binding
      ->add({.program = kGet.program,
             .version = 1,
             .procedure = kGet.procedure,
             .where = BulkItem::Where::kResults,
             .offset = 4,
             .max_bytes = 1u << 20,
             .arm = BulkItem::Arm{0, 0}})
      .value();
  return binding;
}

// A word and, where there are data, their count word, they and their padding.
rpc::Octets encode(std::uint32_t word, const rpc::Octets* data) {
  rpc::Octets out(data == nullptr ? 4 : 8 + (data->size() + 3) / 4 * 4);
  iwarp::WriteCursor cursor(out);
  cursor.be(word);
  if (data != nullptr) {
    cursor.be(static_cast<std::uint32_t>(data->size()));
    cursor.bytes(*data);
  }
  return out;
}

class Store {
 public:
  awaitable<rpc::Answer> handle(rpc::Call call) {
    iwarp::ReadCursor in(call.arguments());
    const auto name = in.be<std::uint32_t>();
    if (call.procedure() == kPut.procedure) {
      const auto data = in.take(in.be<std::uint32_t>());
      if (!in.ok()) co_return AcceptStat::kGarbageArgs;
      const std::lock_guard lock(mu_);
      files_[name].assign(data.begin(), data.end());
      co_return AcceptStat::kSuccess;
    }
    if (call.procedure() != kGet.procedure) co_return AcceptStat::kProcUnavail;
    if (!in.ok()) co_return AcceptStat::kGarbageArgs;
    const std::lock_guard lock(mu_);
    const auto found = files_.find(name);
    co_return found == files_.end() ? encode(2, nullptr) : encode(0, &found->second);
  }

 private:
  std::mutex mu_;  // handlers run in four threads
  std::map<std::uint32_t, rpc::Octets> files_;
};

awaitable<void> put_and_get(rpc::Client& client, rpc::RegisteredMemory& memory) {
  rpc::Octets file(1u << 20);
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::byte>(i * 7 >> 3);
  const rpc::CallOptions patience{.timeout = std::chrono::seconds(20)};
  std::pmr::vector<std::byte> arguments(8 + file.size(), &memory);  // built where they are sent from
  iwarp::WriteCursor cursor(arguments);
  cursor.be(std::uint32_t{1});
  cursor.be(static_cast<std::uint32_t>(file.size()));
  cursor.bytes(file);
  const auto put = co_await client.async_call(kPut, rpc::RegisteredOctets(std::move(arguments)), patience,
                                              boost::asio::use_awaitable);
  const auto got = co_await client.async_call(kGet, encode(1, nullptr), patience, boost::asio::use_awaitable);
  const auto none = co_await client.async_call(kGet, encode(9, nullptr), patience, boost::asio::use_awaitable);
  const bool same = put.success() && got.success() && std::ranges::equal(got.results().subspan(8), file);
  std::printf("%zu octets came back%s; the file that is not there: status %u\n", got.results().size() - 8,
              same ? " unchanged" : ", others", iwarp::load_be<std::uint32_t>(none.results().first(4)));
}

int main() try {
  rpc::RegisteredMemory memory(4u << 20);  // goes after the engine
  iwarp::cm::Engine engine;
  Store store;
  rpc::ServerOptions served{.threads = 4};
  served.responder.declared = declare();
  rpc::Server server(engine, served);
  server.serve(kPut.program, 1, [&](rpc::Call call) { return store.handle(std::move(call)); });
  const auto listener = rpc::on_iwarp(engine, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}});
  server.listen(listener).value();

  rpc::ClientOptions options;
  options.requester.declared = declare();
  rpc::Client client(engine, rpc::over_iwarp(engine, {.host = "127.0.0.1", .port = listener->local().port()}), options);
  co_spawn(engine.get_executor(), put_and_get(client, memory), boost::asio::use_future).get();
} catch (const std::exception& e) {
  std::fprintf(stderr, "rpc_files: %s\n", e.what());
  return 1;
}
