// What is to follow a drive of a connection: in the same handler, and never within a call of the application.
#include "iwarp/cm/after_drive.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

TEST(AfterDrive, PostsOutsideOfADrive) {
  boost::asio::io_context io;
  int ran = 0;
  AfterDrive::add(io, [&] { ++ran; });
  EXPECT_EQ(ran, 0);
  io.run();
  EXPECT_EQ(ran, 1);
}

TEST(AfterDrive, RunsOnceInItsOrder) {
  boost::asio::io_context io;
  std::string order;
  AfterDrive outer(io);
  AfterDrive::add(io, [&] { order += 'c'; });
  {
    AfterDrive inner(io);
    AfterDrive::add(io, [&] {
      order += 'a';
      AfterDrive::add(io, [&] { order += 'd'; });  // of the drive around it
    });
    AfterDrive::add(io, [&] { order += 'b'; });
    EXPECT_TRUE(inner.run());
  }
  EXPECT_EQ(order, "ab");
  EXPECT_TRUE(outer.run());
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(io.run(), 0U);
  AfterDrive idle(io);
  EXPECT_FALSE(idle.run());
}

TEST(AfterDrive, LosesNothingWhenSomethingThrows) {
  struct Thrown {};
  boost::asio::io_context io;
  int ran = 0;
  {
    const AfterDrive thrown_before(io);
    AfterDrive::add(io, [&] { ++ran; });
  }
  {
    AfterDrive after(io);
    AfterDrive::add(io, [] { throw Thrown{}; });
    AfterDrive::add(io, [&] { ++ran; });
    EXPECT_THROW(after.run(), Thrown);
  }
  EXPECT_EQ(ran, 0);
  io.run();
  EXPECT_EQ(ran, 2);
}

// Is told, and has something posted as soon as it may.
struct Answers : verbs::Notifier {
  Answers(boost::asio::io_context& of, Node& node) : io(of), mine(node) {
    node.cq.arm(verbs::CompletionQueue::Notify::kNext, *this);
  }
  ~Answers() override { mine.cq.disarm(); }
  void notify(verbs::CompletionQueue&) noexcept override {
    AfterDrive::add(io, [this] {
      answered = true;
      if (answer) mine.send(9, 16);  // takes the queue pair's lock
    });
  }
  boost::asio::io_context& io;
  Node& mine;
  bool answer = true, answered = false;
};

class Answered : public ::testing::Test {
 protected:
  template <class T>
  T run_for(std::future<T> f) {
    if (!eventually([&] {
          io_.restart();
          io_.poll();
          return f.wait_for(0s) == std::future_status::ready;
        }))
      throw std::runtime_error("operation never ended");
    return f.get();
  }
  void SetUp() override {
    auto connecting = start_connect(client_, to(*listener_));
    const auto request = std::get<1>(run_for(listener_->async_accept(as_error(boost::asio::use_future))));
    auto accepting = request->async_accept(server_.qp, {}, as_error(boost::asio::use_future));
    ASSERT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
    ASSERT_EQ(std::get<0>(run_for(std::move(accepting))).code, Errc::kOk);
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_;
  Engine client_engine_, server_engine_{io_};
  std::unique_ptr<Listener> listener_ = listen(server_engine_);
  Node client_{client_engine_}, server_{server_engine_};
};

TEST_F(Answered, ByTheHandlerThatReadTheMessage) {
  Answers answers(io_, server_);
  server_.recv(1);
  client_.recv(2);
  client_.send(3, 16);
  EXPECT_TRUE(eventually([&] {
    io_.restart();
    const std::size_t handlers = io_.poll_one();
    return handlers > 0 && !server_.cq.empty();
  }));
  EXPECT_TRUE(answers.answered);
  client_.expect(verbs::WcOp::kSend, 3);
  client_.expect(verbs::WcOp::kRecv, 2);
}

TEST_F(Answered, BehindACallOfTheApplicationThatCompletesSomething) {
  Answers answers(io_, server_);
  answers.answer = false;
  server_.recv(1);
  server_.qp->abort();
  EXPECT_FALSE(server_.cq.empty());
  EXPECT_FALSE(answers.answered);
  io_.restart();
  io_.poll();
  EXPECT_TRUE(answers.answered);
}

}  // namespace
}  // namespace iwarp::cm
