// A program to be called by the tests, and a client and a server joined by a network of either kind.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <functional>
#include <future>
#include <memory>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/client.h"
#include "iwarp/rpc/iwarp_transport.h"
#include "iwarp/rpc/memory_network.h"
#include "iwarp/rpc/server.h"
#include "tests/support/covers.h"
#include "tests/support/eventually.h"
#include "tests/support/hex.h"

namespace iwarp::rpc::test {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using boost::asio::use_awaitable;
using boost::asio::use_future;
using iwarp::test::eventually;
using iwarp::test::kPatience;
using iwarp::test::pattern;
using rpcrdma::AcceptStat;

inline constexpr std::uint32_t kProgram = 0x20000099;
// Its procedures.
inline constexpr std::uint32_t kNull = 0, kEcho = 1, kAdd = 2, kMake = 3, kHold = 4, kThrow = 5;

inline Octets words(std::initializer_list<std::uint32_t> values) {
  Octets out(values.size() * 4);
  WriteCursor cursor(out);
  for (const std::uint32_t v : values) cursor.be(v);
  return out;
}
// opaque<>: count word, data, padding
inline Octets opaque(ConstBytes data) {
  Octets out = words({static_cast<std::uint32_t>(data.size())});
  out.insert(out.end(), data.begin(), data.end());
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}
inline std::uint32_t word(ConstBytes octets, std::size_t index = 0) {
  ReadCursor in(octets);
  in.skip(index * 4);
  return in.be<std::uint32_t>();
}
inline Octets copy(ConstBytes octets) {
  return {octets.begin(), octets.end()};
}

// What the server does, and how often it did.
struct Program {
  std::atomic<unsigned> executed{0};
  std::atomic<unsigned> held{0};  // of kHold
  std::promise<void> let_go;      // ends all kHold
  std::shared_future<void> gate = let_go.get_future().share();

  awaitable<Answer> operator()(Call call) {
    if (call.procedure() != kNull) ++executed;  // a Client calls that one by itself
    switch (call.procedure()) {
      case kNull:
        co_return AcceptStat::kSuccess;
      case kEcho:
        co_return copy(call.arguments());
      case kAdd:
        co_return words({word(call.arguments()) + word(call.arguments(), 1)});
      case kMake:  // status, opaque<> of that many octets
      {
        const auto data = pattern(word(call.arguments()), 7);
        Octets out = words({0});
        const Octets item = opaque(data);
        out.insert(out.end(), item.begin(), item.end());
        co_return out;
      }
      case kHold:
        ++held;
        gate.wait();
        co_return copy(call.arguments());
      case kThrow:
        throw std::runtime_error("the handler has had enough");
      default:
        co_return AcceptStat::kProcUnavail;
    }
  }
  Server::Handler handler() {
    return [this](Call call) { return (*this)(std::move(call)); };
  }
};

enum class Carrier { kMemory, kIwarp };

inline std::string carrier_name(const ::testing::TestParamInfo<Carrier>& info) {
  return info.param == Carrier::kMemory ? "Memory" : "Iwarp";
}

// A server that serves the Program, and how to reach it.
struct World {
  explicit World(Carrier carrier, ServerOptions options = {.threads = 2}) : server(engine, options) {
    server.serve(kProgram, 1, program.handler());
    if (carrier == Carrier::kMemory) {
      server.listen(network.server()).value();
      transport = network.client();
      return;
    }
    const auto listener = on_iwarp(engine, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}});
    server.listen(listener).value();
    transport = over_iwarp(engine, {.host = "127.0.0.1", .port = listener->local().port()});
  }
  ~World() {
    if (!released) program.let_go.set_value();
  }
  void release() {
    released = true;
    program.let_go.set_value();
  }

  cm::Engine engine;
  MemoryNetwork network{engine.get_executor()};
  Program program;
  Server server;
  std::shared_ptr<ClientTransport> transport;
  bool released = false;
};

inline Procedure proc(std::uint32_t procedure) {
  return {kProgram, 1, procedure};
}

}  // namespace iwarp::rpc::test
