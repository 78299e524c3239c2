// Two ends in one process and one event loop, over real UDP sockets on loopback: an association with whoever listens.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "iwarp/sctp_cm/stack.h"

namespace iwarp::sctp_cm {

using namespace std::chrono_literals;
using udp = boost::asio::ip::udp;

inline ConstBytes octets(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Keeps what it hears.
struct Hearer : TransportUser {
  struct Got {
    std::uint16_t stream;
    std::uint32_t ppid;
    bool ordered;
    std::string octets;
  };
  std::optional<TransportUp> up;
  std::vector<Got> got;
  std::optional<Error> end;
  int rooms = 0, all_arrived = 0;
  std::function<void()> when_room = [] {};
  std::function<void(const Got&)> when_got = [](const Got&) {};

  void on_up(const TransportUp& u) override { up = u; }
  void on_message(sctp::StreamId stream, const sctp::Message& m) override {
    got.push_back({raw(stream), m.ppid, m.ordered, {reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size()}});
    when_got(got.back());
  }
  void on_room() override { ++rooms, when_room(); }
  void on_all_arrived() override { ++all_arrived; }
  void on_end(const Error& why) override { end = why; }
};

// Loses, delays and doubles a part of the packets, by a seed.
inline FateMaker bad_network(unsigned seed, unsigned lost_percent, unsigned late_percent, unsigned twice_percent) {
  auto random = std::make_shared<std::minstd_rand>(seed);
  return [=](ConstBytes) {
    const unsigned r = static_cast<unsigned>((*random)() >> 8) % 100;
    if (r < lost_percent) return Fate::kLose;
    if (r < lost_percent + late_percent) return Fate::kLater;
    return r < lost_percent + late_percent + twice_percent ? Fate::kTwice : Fate::kPass;
  };
}

class SctpTransport : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kSctpPort = 5043;

  void start(StackOptions options = {}) {
    auto made = Stack::make(io, options);
    ASSERT_TRUE(made) << made.error().why;
    stack = *std::move(made);
  }
  // Accepts all that come, each with a Hearer of its own.
  void listen(const char* address = "127.0.0.1", const TransportOptions& options = {}) {
    auto l = stack->listen({boost::asio::ip::make_address(address), 0}, kSctpPort, options,
                           [this](std::shared_ptr<Association> a) {
                             passive_users.push_back(std::make_unique<Hearer>());
                             a->set_user(passive_users.back().get());
                             passive.push_back(std::move(a));
                           });
    ASSERT_TRUE(l) << l.error().why;
    listener = *std::move(l);
  }
  std::shared_ptr<Association> connect(Hearer& user, const TransportOptions& options = {}) {
    const auto a = stack->connect(listener->local(), kSctpPort, options, user);
    EXPECT_TRUE(a) << (a ? "" : a.error().why);
    return a ? *a : nullptr;
  }
  // One association that is up at both ends.
  std::shared_ptr<Association> join(Hearer& user, const TransportOptions& options = {}) {
    const std::size_t before = passive.size();
    auto a = connect(user, options);
    EXPECT_TRUE(run([&] { return user.up && passive.size() > before && passive_users.back()->up; }));
    return a;
  }
  // Until `done`; false: not within `limit`.
  bool run(const std::function<bool()>& done, std::chrono::milliseconds limit = 20s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      io.run_one_for(20ms);
      io.restart();
    }
    return true;
  }
  void run_for(std::chrono::milliseconds time) {
    (void)run([] { return false; }, time);
  }
  void TearDown() override {
    listener.reset();
    stack.reset();
  }

  boost::asio::io_context io;
  std::unique_ptr<Stack> stack;
  std::unique_ptr<AssociationListener> listener;
  std::vector<std::shared_ptr<Association>> passive;
  std::vector<std::unique_ptr<Hearer>> passive_users;
};

}  // namespace iwarp::sctp_cm
