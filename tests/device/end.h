// A connection over a FakeVerbs, as either side, and what it has told.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "iwarp/device/connection.h"
#include "iwarp/device/failure.h"
#include "tests/device/fake_verbs.h"

namespace iwarp::device::test {

using boost::asio::ip::tcp;
using namespace std::chrono_literals;

class ConnectionFixture : public ::testing::Test {
 protected:
  // Of a request, accepted, and established.
  void establish() {
    accept();
    verbs.tell(id, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_TRUE(run_until(io, [&] { return told.has_value(); }));
    ASSERT_EQ(told->code, Errc::kOk) << told->why;
  }
  void accept() {
    device = verbs.open(io);
    auto made = CmId::make(verbs.table());
    ASSERT_TRUE(made);
    id = made->get();
    id->verbs = device->context();
    make(std::move(*made));
    ASSERT_TRUE(connection->make_queue_pair());
    connection->accept({8, 4, {}}, [this](const Error& error) { take(error); });
  }
  void make(CmId of) {
    auto made = Connection::make(io, device, std::move(of), 4, times);
    ASSERT_TRUE(made);
    connection = std::move(*made);
  }
  void take(const Error& error) {
    EXPECT_FALSE(told) << "told twice";
    told = error;
    if (error.code != Errc::kOk) return;
    connection->on_end([this](const End& how) {
      EXPECT_FALSE(end) << "told twice";
      end = how;
    });
  }
  [[nodiscard]] ::testing::AssertionResult ends() {
    if (run_until(io, [&] { return end.has_value(); })) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "is " << name(connection->life());
  }
  // A Send of 100 octets, posted.
  void post_send(std::uint64_t number = 1) {
    const rpcrdma::LocalSlice slice{MutBytes(memory).first(100), Stag{7}};
    ASSERT_TRUE(connection->endpoint().post_send(number, {&slice, 1}, std::nullopt));
    ASSERT_TRUE(connection->endpoint().flush());
  }
  std::vector<rpcrdma::Completion> poll() {
    std::array<rpcrdma::Completion, 16> batch;
    const std::size_t n = connection->poll(batch);
    return {batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(n)};
  }

  boost::asio::io_context io;
  FakeVerbs verbs;
  std::shared_ptr<Device> device;
  ConnectionTimes times{.establish = 2000ms, .finish = 100ms, .leave = 50ms, .suspect = 50ms};
  rdma_cm_id* id = nullptr;
  std::shared_ptr<Connection> connection;
  std::optional<Error> told;
  std::optional<End> end;
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
};

}  // namespace iwarp::device::test
