#include "iwarp/device/listener.h"

#include "tests/device/end.h"

namespace iwarp::device::test {
namespace {

class DeviceListener : public ::testing::Test {
 protected:
  void listen(const char* address = "10.0.0.1") {
    device = verbs.open(io);
    auto made = Listener::listen(io, device, {boost::asio::ip::make_address(address), 0},
                                 {[this](std::unique_ptr<Request> request) { requests.push_back(std::move(request)); },
                                  [this](const Error& why) { lost.push_back(why); }});
    ASSERT_TRUE(made) << made.error().why;
    listener = std::move(*made);
    id = verbs.last_id();
  }

  boost::asio::io_context io, home;  // outlive the devices
  FakeVerbs verbs;
  std::shared_ptr<Device> device;
  std::unique_ptr<Listener> listener;
  rdma_cm_id* id = nullptr;
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Error> lost;
};

TEST_F(DeviceListener, TellsThePortThatItGot) {
  listen();
  EXPECT_EQ(listener->local(), (tcp::endpoint{boost::asio::ip::make_address("10.0.0.1"), 20049}));
}

TEST_F(DeviceListener, HandsOutRequestsWithWhatTheySay) {
  listen();
  verbs.request(id, {.private_data = {std::byte{1}, std::byte{2}}, .responder_resources = 3, .initiator_depth = 128});
  ASSERT_TRUE(run_until(io, [&] { return requests.size() == 1; }));
  const Request& r = *requests[0];
  EXPECT_EQ(r.remote(), (tcp::endpoint{boost::asio::ip::make_address("10.0.0.5"), 50000}));
  EXPECT_EQ(r.private_data(), (std::vector{std::byte{1}, std::byte{2}}));
  EXPECT_EQ(r.peer_ird(), 128U);
  EXPECT_EQ(r.peer_ord(), 3U);
  requests.clear();  // nobody has decided
  EXPECT_EQ(verbs.calls("reject"), 1);
}

TEST_F(DeviceListener, RejectsWhatComesOverAnotherDevice) {
  listen("0.0.0.0");
  verbs.request(id, {}, 1);
  verbs.request(id, {}, 0);
  ASSERT_TRUE(run_until(io, [&] { return requests.size() == 1; }));
  EXPECT_EQ(verbs.calls("reject"), 1);
}

// A request whose id cannot be had costs nobody but its peer.
TEST_F(DeviceListener, SurvivesARequestThatCannotBeTaken) {
  listen();
  for (const char* call : {"migrate_id", "create_event_channel"}) {
    verbs.fail(call, EMFILE);
    verbs.request(id, {});
  }
  verbs.request(id, {});
  ASSERT_TRUE(run_until(io, [&] { return requests.size() == 1 || verbs.calls("reject") == 2; }));
  settle(io);
  EXPECT_EQ(requests.size(), 1U);
  EXPECT_EQ(verbs.calls("reject"), 2);
}

TEST_F(DeviceListener, MayGoInsideItsHandler) {
  device = verbs.open(io);
  auto made = Listener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 1},
                               {[this](std::unique_ptr<Request>) { listener.reset(); }, {}});
  ASSERT_TRUE(made);
  listener = std::move(*made);
  id = verbs.last_id();
  verbs.request(id, {});
  verbs.request(id, {});
  ASSERT_TRUE(run_until(io, [&] { return listener == nullptr; }));
}

TEST_F(DeviceListener, IsLostWithItsDevice) {
  listen();
  verbs.tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL);
  ASSERT_TRUE(run_until(io, [&] { return !lost.empty(); }));
  settle(io);
  EXPECT_EQ(lost.size(), 1U);
  EXPECT_TRUE(device->gone());
  EXPECT_EQ(verbs.live(), 0U);
}

TEST_F(DeviceListener, IsLostWhenTheDeviceFails) {
  listen();
  verbs.async(IBV_EVENT_DEVICE_FATAL, nullptr);
  ASSERT_TRUE(run_until(io, [&] { return !lost.empty(); }));
  EXPECT_EQ(verbs.live(), 0U);
  EXPECT_FALSE(Listener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 1}, {}));
}

// Between the first look at the device and the watch over it: nobody else would tell.
TEST_F(DeviceListener, DoesNotMissALossWhileItIsSetUp) {
  device = verbs.open(io);
  verbs.in_listen = [this] {
    device->lost(make_error(Errc::kSystem, "removed"));
    settle(io);  // whoever watches has been told
  };
  const auto made = Listener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 1},
                                     {{}, [this](const Error& why) { lost.push_back(why); }});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kSystem);
  settle(io);
  EXPECT_TRUE(lost.empty()) << "the caller has been told";
  EXPECT_EQ(verbs.live(), 0U);
}

// The device is of another thread than the listener, which hears of the loss in its own; and may go just then.
TEST_F(DeviceListener, HearsOfALossInItsOwnThread) {
  device = verbs.open(home);
  for (const bool goes : {false, true}) {
    auto made = Listener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 1},
                                 {{}, [this](const Error& why) { lost.push_back(why); }});
    if (goes) {
      ASSERT_FALSE(made) << "it is gone by now";
      break;
    }
    ASSERT_TRUE(made);
    listener = std::move(*made);
    auto other = Listener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 2},
                                  {{}, [](const Error&) { FAIL() << "it has gone before it heard"; }});
    ASSERT_TRUE(other);
    device->lost(make_error(Errc::kSystem, "removed"));
    settle(home);
    EXPECT_TRUE(lost.empty()) << "not in the thread of the device";
    other->reset();
    settle(io);
    EXPECT_EQ(lost.size(), 1U);
  }
}

TEST_F(DeviceListener, ItsHandlerMayGoInsideItself) {
  device = verbs.open(io);
  std::string text = "long enough not to lie in the function itself, of which the handler makes use at its end";
  std::string said;
  auto made = Listener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 1},
                               {[this, text, &said](std::unique_ptr<Request>) {
                                  listener.reset();
                                  said = text;
                                },
                                {}});
  ASSERT_TRUE(made);
  listener = std::move(*made);
  verbs.request(verbs.last_id(), {});
  ASSERT_TRUE(run_until(io, [&] { return listener == nullptr; }));
  EXPECT_EQ(said, text);
}

TEST_F(DeviceListener, RefusesAnAddressOfAnotherDevice) {
  verbs.device_of_address = 1;
  device = verbs.open(io);
  const auto made = Listener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 1}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kInvalidArgument);
}

TEST_F(DeviceListener, SaysWhyItCannotListen) {
  device = verbs.open(io);
  for (const char* call : {"bind_addr", "listen"}) {
    verbs.fail(call, EADDRINUSE);
    const auto made = Listener::listen(io, device, {boost::asio::ip::make_address("::1"), 1}, {});
    ASSERT_FALSE(made) << call;
    EXPECT_EQ(std::string(made.error().why).find("Address already in use"), 0U);
    EXPECT_EQ(verbs.live(), 0U) << call;
  }
}

}  // namespace
}  // namespace iwarp::device::test
