#include "iwarp/device/device.h"

#include "tests/device/end.h"

namespace iwarp::device::test {
namespace {

TEST(Device, IsFoundByItsName) {
  boost::asio::io_context io;
  FakeVerbs verbs;
  const auto device = verbs.open(io, "fake1");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->name(), "fake1");
  EXPECT_TRUE(device->iwarp());
  EXPECT_TRUE(device->sends_with_invalidate());
}

TEST(Device, ThatIsNotThereIsToldWithThoseThatAre) {
  boost::asio::io_context io;
  FakeVerbs verbs;
  EXPECT_EQ(Device::open(verbs.table(), io, "siw7").error, "no RDMA device 'siw7'; there are: fake0, fake1");
}

TEST(Device, SaysWhatIsWrong) {
  boost::asio::io_context io;
  FakeVerbs verbs;
  verbs.fail("get_devices", EACCES);
  EXPECT_NE(Device::open(verbs.table(), io, "fake0").error.find("/dev/infiniband"), std::string::npos);
  verbs.fail("get_devices", ENODEV);
  EXPECT_NE(Device::open(verbs.table(), io, "fake0").error.find("there is none: is its driver loaded"),
            std::string::npos);
  verbs.fail("query_device", EIO);
  EXPECT_FALSE(Device::open(verbs.table(), io, "fake0").device);
}

TEST(Device, TellsNobodyWhoHasStoppedListening) {
  boost::asio::io_context io;
  FakeVerbs verbs;
  const auto device = verbs.open(io);
  ibv_qp qp{};
  int heard = 0;
  auto watch = device->watch(&qp, nullptr, [&](const Error&) { ++heard; });
  verbs.async(IBV_EVENT_QP_ACCESS_ERR, &qp);
  ASSERT_TRUE(run_until(io, [&] { return heard == 1; }));
  watch.reset();
  verbs.async(IBV_EVENT_QP_ACCESS_ERR, &qp);
  settle(io);
  EXPECT_EQ(heard, 1);
}

TEST(Device, IsGoneOnce) {
  boost::asio::io_context io;
  FakeVerbs verbs;
  const auto device = verbs.open(io);
  int heard = 0;
  const auto watch = device->watch(nullptr, nullptr, [&](const Error&) { ++heard; });
  device->lost(make_error(Errc::kSystem));
  device->lost(make_error(Errc::kSystem));
  verbs.async(IBV_EVENT_DEVICE_FATAL, nullptr);
  settle(io);
  EXPECT_EQ(heard, 1);
}

// A device that was removed: its events cannot be read, and their descriptor is ready for ever.
TEST(Device, WhoseEventsCannotBeReadIsGone) {
  boost::asio::io_context io;
  FakeVerbs verbs;
  const auto device = verbs.open(io);
  int heard = 0;
  const auto watch = device->watch(nullptr, nullptr, [&](const Error&) { ++heard; });
  verbs.break_async();
  ASSERT_TRUE(run_until(io, [&] { return heard == 1; }));
  EXPECT_TRUE(device->gone());
  io.restart();
  EXPECT_EQ(io.poll(), 0U) << "nobody looks at it any more";
}

TEST(Device, MayBeUsedAfterItsLoopIsGone) {
  FakeVerbs verbs;
  std::shared_ptr<Device> device;
  {
    boost::asio::io_context io;
    device = Device::open(verbs.table(), io, "fake0").device;
    device->close();
  }
  device->lost(make_error(Errc::kSystem));
  EXPECT_TRUE(device->gone());
}

// Of the libraries that are installed here, if any: the table is whole, or says what is to be installed.
TEST(Device, TableIsWholeOrSaysWhatIsMissing) {
  const LoadedTable& loaded = load_verbs();
  if (loaded.table == nullptr) {
    EXPECT_NE(loaded.error.find("install the packages"), std::string::npos) << loaded.error;
  } else {
    EXPECT_NE(loaded.table->migrate_id, nullptr);
    EXPECT_NE(loaded.table->wc_status_str, nullptr);
    EXPECT_EQ(loaded.error, "");
  }
}

}  // namespace
}  // namespace iwarp::device::test
