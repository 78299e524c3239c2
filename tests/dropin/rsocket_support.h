// What the tests of rsockets begin with: sockets on the loopback, and a connected pair of them.
#pragma once

#include "tests/dropin/rsocket_names.h"
//
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "tests/dropin/loopback.h"

namespace iwarp::dropin::test {

inline const sockaddr* as_sockaddr(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Closed with its owner; by any thread.
class Rsocket {
 public:
  Rsocket() : descriptor_(::rsocket(AF_INET, SOCK_STREAM, 0)) { EXPECT_GE(descriptor_, 0) << std::strerror(errno); }
  explicit Rsocket(int descriptor) : descriptor_(descriptor) { EXPECT_GE(descriptor, 0) << std::strerror(errno); }
  Rsocket(Rsocket&& other) noexcept : descriptor_(other.descriptor_.exchange(-1)) {}
  Rsocket& operator=(Rsocket&&) = delete;
  ~Rsocket() { close(); }

  operator int() const { return descriptor_; }  // NOLINT: as the calls take it
  void close() {
    const int descriptor = descriptor_.exchange(-1);
    if (descriptor < 0) return;
    EXPECT_EQ(::rclose(descriptor), 0);
  }

 private:
  std::atomic<int> descriptor_;
};

inline void set_nonblocking(int socket) {
  ASSERT_EQ(::rfcntl(socket, F_SETFL, O_NONBLOCK), 0);
}

inline void set_option(int socket, int level, int name, int value) {
  ASSERT_EQ(::rsetsockopt(socket, level, name, &value, sizeof value), 0) << std::strerror(errno);
}

inline int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::rgetsockopt(socket, level, name, &value, &size), 0) << std::strerror(errno);
  return value;
}

inline std::uint16_t port_of(int socket) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(::rgetsockname(socket, reinterpret_cast<sockaddr*>(&name), &size), 0);
  EXPECT_EQ(size, sizeof name);
  return ntohs(name.sin_port);
}

// What rpoll() tells of one socket; 0: nothing within the time.
inline short polled(int socket, short events, int timeout_ms = 0) {
  pollfd watched{socket, events, 0};
  const int found = ::rpoll(&watched, 1, timeout_ms);
  EXPECT_EQ(found, watched.revents != 0 ? 1 : 0);
  return watched.revents;
}

inline ssize_t send_text(int socket, std::string_view text, int flags = 0) {
  return ::rsend(socket, text.data(), text.size(), flags);
}

// Up to `most` octets; "-" and the name of the error.
inline std::string receive_text(int socket, std::size_t most = 100, int flags = 0) {
  std::string text(most, '\0');
  const ssize_t got = ::rrecv(socket, text.data(), text.size(), flags);
  if (got < 0) return std::string("-") + strerrorname_np(errno);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

// Octets that tell where they belong.
inline std::string pattern(std::size_t size) {
  std::string octets(size, '\0');
  for (std::size_t i = 0; i < size; ++i) octets[i] = static_cast<char>((i * 131) ^ (i >> 9));
  return octets;
}

// A listener and a connected pair, which tests may set up otherwise before.
class RsocketTest : public ::testing::Test {
 protected:
  RsocketTest() {
    const auto any = loopback();
    EXPECT_EQ(::rbind(listener, as_sockaddr(any), sizeof any), 0) << std::strerror(errno);
    EXPECT_EQ(::rlisten(listener, 4), 0) << std::strerror(errno);
  }
  void connect() {
    const auto address = loopback(port_of(listener));
    ASSERT_EQ(::rconnect(client, as_sockaddr(address), sizeof address), 0) << std::strerror(errno);
    accepted = ::raccept(listener, nullptr, nullptr);
    ASSERT_GE(accepted, 0) << std::strerror(errno);
  }
  ~RsocketTest() override {
    client.close();
    if (accepted < 0) return;
    EXPECT_EQ(::rclose(accepted), 0);
  }

  Rsocket listener, client;
  int accepted = -1;
};

// Whether a thread of this process is asleep, as the system has it.
inline bool is_asleep(::pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_ends = text.rfind(')');  // the state follows
  return name_ends != std::string::npos && text.size() > name_ends + 2 && text[name_ends + 2] == 'S';
}

// Runs `call` in a thread, which is to wait there, and sends it one signal when it does, of a handler that ends calls:
// the call is over then. It is to check errno.
template <class Call>
void ends_by_a_signal(Call call) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<::pid_t> id{0};
  std::atomic<bool> over{false};
  std::thread thread([&] {
    id.store(::gettid());
    call();
    over.store(true);
  });
  const auto wait = [](std::chrono::milliseconds most, const auto& done) {
    const auto until = std::chrono::steady_clock::now() + most;
    while (!done()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  };
  // More than once: where it is woken for a moment only, it is asleep elsewhere before it calls.
  for (int looks = 0; looks < 3 && !over.load(); ++looks) {
    EXPECT_TRUE(
        wait(std::chrono::seconds(20), [&] { return id.load() != 0 && (is_asleep(id.load()) || over.load()); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(over.load()) << "it did not wait";
  ::pthread_kill(thread.native_handle(), SIGUSR1);
  EXPECT_TRUE(wait(std::chrono::seconds(20), [&] { return over.load(); })) << "the signal was lost";
  while (!wait(std::chrono::milliseconds(10), [&] { return over.load(); }))
    ::pthread_kill(thread.native_handle(), SIGUSR1);
  thread.join();
  EXPECT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

}  // namespace iwarp::dropin::test
