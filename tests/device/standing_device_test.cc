#include "iwarp/device/standing_device.h"

#include <string>
#include <thread>

#include "iwarp/device/standing_listener.h"
#include "tests/device/end.h"

namespace iwarp::device::test {
namespace {

// Waits as long as a look must wait for the next.
void wait_for_look() {
  std::this_thread::sleep_for(StandingDevice::kLookEvery + 5ms);
}

class Standing : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = StandingDevice::open(verbs.table(), io, "fake0");
    ASSERT_TRUE(opened.device) << opened.error;
    device = std::move(opened.device);
  }
  ~Standing() override {
    listener.reset();
    if (device) device->close();
  }
  void listen(std::chrono::milliseconds look_every = 20ms) {
    auto made = StandingListener::listen(io, device, {boost::asio::ip::make_address("10.0.0.1"), 0},
                                         {[this](std::unique_ptr<Request> r) { requests.push_back(std::move(r)); },
                                          [this](const Error& why) { told.push_back(std::string("lost: ") + why.why); },
                                          [this] { told.push_back("back"); }},
                                         look_every);
    ASSERT_TRUE(made) << made.error().why;
    listener = std::move(*made);
  }
  // Removed, as the listening id hears it.
  void remove() {
    verbs.there = false;
    const std::size_t before = told.size();
    verbs.tell(verbs.last_id(), RDMA_CM_EVENT_DEVICE_REMOVAL);
    ASSERT_TRUE(run_until(io, [&] { return told.size() > before; }));
    EXPECT_EQ(told.back(), "lost: the RDMA device was removed");
  }

  boost::asio::io_context io;
  FakeVerbs verbs;
  std::shared_ptr<StandingDevice> device;
  std::unique_ptr<StandingListener> listener;
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<std::string> told;
};

TEST_F(Standing, MustBeThereAtFirst) {
  EXPECT_NE(StandingDevice::open(verbs.table(), io, "siw7").error, "");
}

TEST_F(Standing, IsOpenedAnewWhenItIsBack) {
  const auto first = device->current();
  EXPECT_TRUE(device->look());
  EXPECT_EQ(device->current(), first);
  verbs.there = false;
  first->lost(make_error(Errc::kSystem));
  const auto looked = std::chrono::steady_clock::now();
  EXPECT_FALSE(device->look());
  EXPECT_EQ(device->current(), first) << "which is gone";
  verbs.there = true;
  const bool there = device->look();
  if (std::chrono::steady_clock::now() - looked < StandingDevice::kLookEvery) {
    EXPECT_FALSE(there) << "too soon: the system is not asked that often";
  }
  wait_for_look();
  EXPECT_TRUE(device->look());
  EXPECT_NE(device->current(), first);
  EXPECT_FALSE(device->current()->gone());
  EXPECT_EQ(device->current()->name(), "fake0");
}

TEST_F(Standing, IsNotOpenedAnewOnceClosed) {
  device->current()->lost(make_error(Errc::kSystem));
  device->close();
  EXPECT_FALSE(device->look());
}

TEST_F(Standing, ListensAgainWhenTheDeviceIsBack) {
  listen();
  const auto at = listener->local();
  for (int round = 0; round < 2; ++round) {
    remove();
    EXPECT_FALSE(listener->listening());
    EXPECT_EQ(verbs.live(), 0U);
    settle(io);
    EXPECT_EQ(told.back(), "lost: the RDMA device was removed") << "told once";
    verbs.there = true;
    ASSERT_TRUE(run_until(io, [&] { return told.back() == "back"; }));
    EXPECT_EQ(listener->local(), at);
    verbs.request(verbs.last_id(), {});
    ASSERT_TRUE(run_until(io, [&] { return !requests.empty(); }));
    EXPECT_EQ(requests[0]->device(), device->current());
    requests.clear();
  }
  EXPECT_EQ(told.size(), 4U);
}

// The device is there, and its address or port not yet.
TEST_F(Standing, TriesUntilItCanListen) {
  listen();
  remove();
  verbs.fail("bind_addr", EADDRNOTAVAIL);
  verbs.there = true;
  ASSERT_TRUE(run_until(io, [&] { return verbs.calls("bind_addr") == 2; }));
  EXPECT_FALSE(listener->listening());
  ASSERT_TRUE(run_until(io, [&] { return told.back() == "back"; }));
  EXPECT_EQ(verbs.calls("bind_addr"), 3);
}

TEST_F(Standing, AListenerThatGoesLooksNoMore) {
  listen();
  remove();
  listener.reset();
  verbs.there = true;
  const int asked = verbs.calls("get_devices");
  std::this_thread::sleep_for(30ms);
  settle(io);
  EXPECT_EQ(verbs.calls("get_devices"), asked);
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(Standing, AListenerMayGoInItsHandlers) {
  for (const bool lost : {true, false}) {
    listener.reset();
    auto made = StandingListener::listen(
        io, device, {boost::asio::ip::make_address("10.0.0.1"), 0},
        {{}, [&](const Error&) { lost ? listener.reset() : void(); }, [&] { listener.reset(); }}, 20ms);
    ASSERT_TRUE(made);
    listener = std::move(*made);
    verbs.tell(verbs.last_id(), RDMA_CM_EVENT_DEVICE_REMOVAL);
    ASSERT_TRUE(run_until(io, [&] { return listener == nullptr; }));
    wait_for_look();
  }
}

}  // namespace
}  // namespace iwarp::device::test
