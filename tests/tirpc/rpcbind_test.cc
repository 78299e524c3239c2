// Answers of a rpcbind that nobody need trust: a socket of the test plays it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "iwarp/base/wire.h"
#include "iwarp/tirpc/rpcbind.h"

namespace iwarp::tirpc::test {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

void put(Bytes& to, std::uint32_t word) {
  to.resize(to.size() + 4);
  store_be(std::span<std::byte, 4>(to.end() - 4, to.end()), word);
}
void put(Bytes& to, const std::string& text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  const auto octets = std::as_bytes(std::span(text));
  to.insert(to.end(), octets.begin(), octets.end());
  to.resize((to.size() + 3) / 4 * 4);
}
void put_entry(Bytes& to, std::uint32_t program, const std::string& netid, const std::string& address) {
  for (const std::uint32_t word : {1u, program, 1u}) put(to, word);
  for (const std::string& text : {netid, address, std::string("superuser")}) put(to, text);
}

// Answers one Call: `answer` sends fragments of a record until it has sent the last, or nobody reads any more.
class FakeRpcbind {
 public:
  using Send = std::function<bool(const Bytes& octets, bool last)>;

  explicit FakeRpcbind(std::function<void(const Send&)> answer) {
    directory_ = std::filesystem::temp_directory_path() / ("rpcbind." + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
    sockaddr_un address{};
    address.sun_family = AF_LOCAL;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    listens_ = ::socket(AF_LOCAL, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(listens_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listens_, 1), 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const int fd = ::accept(listens_, nullptr, nullptr);
      std::array<std::byte, 512> call;
      EXPECT_GT(::recv(fd, call.data(), call.size(), 0), 8);
      Bytes head;  // accepted, AUTH_NONE, success
      for (const std::uint32_t word : {load_be<std::uint32_t>(std::span(call).subspan<4, 4>()), 1u, 0u, 0u, 0u, 0u}) {
        put(head, word);
      }
      const Send send = [&](const Bytes& octets, bool last) {
        Bytes all;
        put(all, static_cast<std::uint32_t>(octets.size()) | (last ? 0x80000000u : 0));
        all.insert(all.end(), octets.begin(), octets.end());
        sent_ += all.size();
        return ::send(fd, all.data(), all.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(all.size());
      };
      if (send(head, false)) answer(send);
      ::close(fd);
    });
  }
  ~FakeRpcbind() {
    join();
    ::close(listens_);
    std::filesystem::remove_all(directory_);
  }
  FakeRpcbind(const FakeRpcbind&) = delete;
  FakeRpcbind& operator=(const FakeRpcbind&) = delete;

  void join() {
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::string path() const { return directory_ / "sock"; }
  [[nodiscard]] std::size_t sent() const { return sent_; }

 private:
  std::filesystem::path directory_;
  int listens_ = -1;
  std::size_t sent_ = 0;
  std::thread thread_;
};

// That of the host's kind of address, or else of the other.
TEST(TirpcRpcbind, FindsAPortAmongOthers) {
  const auto found = [](const std::string& host, bool both) {
    FakeRpcbind rpcbind([both](const FakeRpcbind::Send& send) {
      Bytes list;
      put_entry(list, 77, "tcp", "0.0.0.0.8.1");
      put_entry(list, 78, "rdma", "0.0.0.0.8.2");
      put_entry(list, 77, "rdma", "nonsense");
      put_entry(list, 77, "rdma6", "::.78.81");
      if (both) put_entry(list, 77, "rdma", "0.0.0.0.8.3");
      put_entry(list, 77, "rdma6", "::.8.4");
      put(list, 0);
      (void)send(list, true);
    });
    return find_port(host, 77, 1, 10s, rpcbind.path()).value();
  };
  EXPECT_EQ(found("127.0.0.1", true), 2051);
  EXPECT_EQ(found("127.0.0.1", false), 20049);
  EXPECT_EQ(found("::1", true), 20049);
}

TEST(TirpcRpcbind, KnowsNoSuch) {
  FakeRpcbind rpcbind([](const FakeRpcbind::Send& send) {
    Bytes none;
    put(none, 0);
    (void)send(none, true);
  });
  EXPECT_EQ(find_port("localhost", 77, 1, 10s, rpcbind.path()).error().code, Errc::kInvalidArgument);
}

TEST(TirpcRpcbind, EndlessAnswersEnd) {
  FakeRpcbind rpcbind([](const FakeRpcbind::Send& send) {
    Bytes some;
    for (int i = 0; i < 10; ++i) put_entry(some, 1, "tcp", "0.0.0.0.8.1");
    while (send(some, false)) {
    }
  });
  EXPECT_EQ(find_port("localhost", 77, 1, 10s, rpcbind.path()).error().code, Errc::kNotConnected);
  rpcbind.join();
  EXPECT_LT(rpcbind.sent(), 2u << 20);
}

TEST(TirpcRpcbind, SlowAnswersEnd) {
  FakeRpcbind rpcbind([](const FakeRpcbind::Send& send) {
    Bytes one;
    put_entry(one, 1, "tcp", "0.0.0.0.8.1");
    while (send(one, false)) std::this_thread::sleep_for(20ms);
  });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(find_port("localhost", 77, 1, 200ms, rpcbind.path()).error().code, Errc::kNotConnected);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
}

TEST(TirpcRpcbind, AnswersOctetByOctetEnd) {
  FakeRpcbind rpcbind([](const FakeRpcbind::Send& send) {
    Bytes entry;
    put_entry(entry, 1, "tcp", std::string(200, '1'));
    for (const std::byte octet : entry) {
      if (!send({octet}, false)) return;
      std::this_thread::sleep_for(50ms);
    }
  });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(find_port("localhost", 77, 1, 200ms, rpcbind.path()).error().code, Errc::kNotConnected);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);  // the entry takes 12 s
}

TEST(TirpcRpcbind, LengthsOfTheirOwn) {
  for (const std::uint32_t length : {256u, 8999u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
    for (int which = 0; which < 3; ++which) {
      FakeRpcbind rpcbind([&](const FakeRpcbind::Send& send) {
        Bytes list;
        for (const std::uint32_t word : {1u, 77u, 1u}) put(list, word);
        for (int i = 0; i < which; ++i) put(list, "x");
        put(list, length);
        list.resize(list.size() + 9000);
        (void)send(list, true);
      });
      EXPECT_EQ(find_port("localhost", 77, 1, 10s, rpcbind.path()).error().code, Errc::kNotConnected) << length;
    }
  }
}

}  // namespace
}  // namespace iwarp::tirpc::test
