// Registration at an rpcbind that the test plays.
#include "iwarp/gateway/rpcbind.h"

#include <gmock/gmock.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <sstream>

#include "iwarp/rpcrdma/rpc_message.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"
#include "tests/support/eventually.h"

namespace iwarp::gateway {
namespace {

using iwarp::test::Bytes;
using iwarp::test::eventually;
using iwarp::test::operator+;
using boost::asio::ip::make_address;
using boost::asio::local::stream_protocol;
using rpcrdma::test::words;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

// Serves one connection after the other, in a thread of its own.
class FakeRpcbind {
 public:
  enum class Manner { kTrue, kFalse, kSilent, kError };

  FakeRpcbind() : acceptor_(io_, stream_protocol::endpoint(path())), thread_([this] { serve(); }) {}
  ~FakeRpcbind() {
    over_ = true;
    stream_protocol::socket wake(io_);
    boost::system::error_code ec;
    wake.connect(path(), ec);
    wake.close(ec);
    thread_.join();
    std::filesystem::remove(path());
  }

  [[nodiscard]] static std::string path() {
    return ::testing::TempDir() + "/iwarp-rpcbind-" + std::to_string(::getpid()) + ".sock";
  }
  // "set 100003 3 rdma 0.0.0.0.78.81 owner", in the order of their coming.
  [[nodiscard]] std::vector<std::string> calls() const {
    const std::lock_guard lock(mu_);
    return calls_;
  }
  [[nodiscard]] std::size_t count() const { return calls().size(); }
  std::atomic<Manner> manner{Manner::kTrue};

 private:
  void serve() {
    while (!over_) {
      stream_protocol::socket s(io_);
      boost::system::error_code ec;
      acceptor_.accept(s, ec);
      while (!ec && !over_) {
        Bytes mark(4);
        boost::asio::read(s, boost::asio::buffer(mark), ec);
        if (ec) break;
        Bytes call(load_be<std::uint32_t>(mark) & 0x7FFFFFFF);
        boost::asio::read(s, boost::asio::buffer(call), ec);
        if (!ec) answer(s, call);
      }
    }
  }

  void answer(stream_protocol::socket& to, const Bytes& call) {
    const auto head = rpcrdma::RpcCall::parse(call);
    ASSERT_TRUE(head.ok());
    EXPECT_EQ(head->program, 100000u);
    EXPECT_EQ(head->version, 3u);
    EXPECT_EQ(head->credential.flavor, rpcrdma::kAuthSys);
    ReadCursor in(ConstBytes(call).subspan(head->arguments_offset));
    std::ostringstream line;
    line << (head->procedure == 1 ? "set" : "unset");
    for (int i = 0; i < 2; ++i) line << ' ' << in.be<std::uint32_t>();
    for (int i = 0; i < 3; ++i) {
      const auto n = in.be<std::uint32_t>();
      const ConstBytes text = in.take((n + 3) / 4 * 4);
      line << ' ' << std::string(reinterpret_cast<const char*>(text.data()), n);
    }
    EXPECT_TRUE(in.ok());
    const Manner how = manner;  // before anybody can see the call, and change it
    {
      const std::lock_guard lock(mu_);
      calls_.push_back(line.str());
    }
    if (how == Manner::kSilent) return;
    const Bytes reply = how == Manner::kError ? words({head->xid, 1, 0, 0, 0, 5})
                                              : rpcrdma::test::rpc_reply(head->xid, words({how == Manner::kTrue}));
    const Bytes record = words({0x80000000 | static_cast<std::uint32_t>(reply.size())}) + reply;
    boost::system::error_code ec;
    boost::asio::write(to, boost::asio::buffer(record), ec);
  }

  boost::asio::io_context io_;
  stream_protocol::acceptor acceptor_;
  mutable std::mutex mu_;
  std::vector<std::string> calls_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

class WarningCounter : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  std::atomic<std::size_t> warnings{0};

 private:
  void sink_it_(const spdlog::details::log_msg& line) override {
    warnings += line.level == spdlog::level::warn ? 1 : 0;
  }
  void flush_() override {}
};

class RpcbindTest : public ::testing::Test {
 protected:
  RpcbindTest() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("rpcbind", sink_);
    logger->sinks().push_back(counter_);  // behind the other
    spdlog::set_default_logger(logger);
    options.socket = FakeRpcbind::path();
  }
  ~RpcbindTest() override { spdlog::set_default_logger(before_); }
  // When the Rpcbind has ended, or warned: its thread writes the log.
  [[nodiscard]] std::string log() const { return log_.str(); }
  [[nodiscard]] std::size_t warnings() const { return counter_->warnings; }

  RpcbindOptions options;
  const boost::asio::ip::tcp::endpoint v4{make_address("0.0.0.0"), 20049};
  const boost::asio::ip::tcp::endpoint v6{make_address("::1"), 20050};
  const std::string me = " " + std::to_string(::geteuid());

 private:
  std::ostringstream log_;
  std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_ = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
  std::shared_ptr<WarningCounter> counter_ = std::make_shared<WarningCounter>();
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(RpcbindTest, RegistersAndWithdraws) {
  COVERS("D2005-10-1");
  COVERS("RFC8166-5-3");
  COVERS("RFC8267-4.2-3");
  FakeRpcbind fake;
  {
    Rpcbind rpcbind(options);
    rpcbind.serve({v4});
    ASSERT_TRUE(eventually([&] { return fake.count() == 2; }));
  }
  EXPECT_THAT(fake.calls(),
              ElementsAre("set 100003 3 rdma 0.0.0.0.78.81" + me, "set 100003 4 rdma 0.0.0.0.78.81" + me,
                          "unset 100003 3 rdma 0.0.0.0.78.81" + me, "unset 100003 4 rdma 0.0.0.0.78.81" + me));
  EXPECT_THAT(log(), HasSubstr("rpcbind: registered program 100003 version 4 netid rdma address 0.0.0.0.78.81"));
  EXPECT_THAT(log(), HasSubstr("rpcbind: withdrawn program 100003 version 4"));
}

TEST_F(RpcbindTest, FollowsTheListeners) {
  COVERS("RFC8166-9-1");
  FakeRpcbind fake;
  options.programs = {{100003, 4}};
  Rpcbind rpcbind(options);
  rpcbind.serve({v4});
  ASSERT_TRUE(eventually([&] { return fake.count() == 1; }));
  rpcbind.serve({v4, v6});
  ASSERT_TRUE(eventually([&] { return fake.count() == 2; }));
  rpcbind.serve({v6});
  ASSERT_TRUE(eventually([&] { return fake.count() == 3; }));
  rpcbind.serve({v6});
  EXPECT_THAT(fake.calls(), ElementsAre("set 100003 4 rdma 0.0.0.0.78.81" + me, "set 100003 4 rdma6 ::1.78.82" + me,
                                        "unset 100003 4 rdma 0.0.0.0.78.81" + me));
}

TEST_F(RpcbindTest, WithdrawsNothingThatItDidNotRegister) {
  FakeRpcbind fake;
  fake.manner = FakeRpcbind::Manner::kFalse;
  {
    Rpcbind rpcbind(options);
    rpcbind.serve({v4});
    ASSERT_TRUE(eventually([&] { return fake.count() == 2; }));
    rpcbind.serve({v4});  // tries again
    ASSERT_TRUE(eventually([&] { return fake.count() == 4; }));
  }
  EXPECT_EQ(fake.count(), 4u);
  EXPECT_THAT(log(), HasSubstr("Stop that server, or restart rpcbind"));
}

TEST_F(RpcbindTest, TriesAgainWhenAsked) {
  FakeRpcbind fake;
  fake.manner = FakeRpcbind::Manner::kError;
  {
    Rpcbind rpcbind(options);
    rpcbind.serve({v4});
    ASSERT_TRUE(eventually([&] { return fake.count() == 1; }));
    fake.manner = FakeRpcbind::Manner::kTrue;
    rpcbind.serve({v4});  // as after a reload
    ASSERT_TRUE(eventually([&] { return fake.count() == 3; }));
  }
  EXPECT_THAT(log(), HasSubstr("it answers with an error"));
  EXPECT_THAT(log(), HasSubstr("registered"));
}

TEST_F(RpcbindTest, SaysWhatToDoWithoutRpcbind) {
  Rpcbind rpcbind(options);
  rpcbind.serve({v4});
  EXPECT_TRUE(eventually([&] { return warnings() > 0; }));
  EXPECT_THAT(log(), HasSubstr("No such file or directory; is it installed and running"));
}

TEST_F(RpcbindTest, WaitsForASilentOneInAThreadOfItsOwn) {
  FakeRpcbind fake;
  fake.manner = FakeRpcbind::Manner::kSilent;
  options.time_limit = 50ms;
  {
    Rpcbind rpcbind(options);
    rpcbind.serve({v4});
    ASSERT_TRUE(eventually([&] { return fake.count() == 1; }));
  }
  EXPECT_THAT(log(), HasSubstr("it does not answer"));
}

TEST(RpcbindEntries, OneOfAllIpv6AddressesServesIpv4Too) {
  const auto entries = rpcbind_entries({{1, 2}}, {make_address("::"), 258});
  EXPECT_THAT(entries, UnorderedElementsAre(RpcbindEntry{1, 2, "rdma6", "::.1.2", {}},
                                            RpcbindEntry{1, 2, "rdma", "0.0.0.0.1.2", {}}));
}

TEST(RpcbindPrograms, Parse) {
  EXPECT_EQ(parse_served_programs("100003:3,100003:4").value, nfs_programs());
  EXPECT_EQ(parse_served_programs("1:2").value, (std::vector<ServedProgram>{{1, 2}}));
  for (const char* wrong : {"", "100003", "100003:", ":4", "100003:4,", "nfs:4", "100003:4x", "-1:4", "4294967296:1"})
    EXPECT_THAT(parse_served_programs(wrong).error, HasSubstr("100003:3,100003:4 is right")) << wrong;
}

}  // namespace
}  // namespace iwarp::gateway
