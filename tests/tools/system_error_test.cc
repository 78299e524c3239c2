// What the system refuses, as its user reads it: the command, the system's own words, what to do; no place in a source.
#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using boost::asio::ip::tcp;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

class SystemErrors : public ::testing::Test {
 protected:
  // Its last line begins with the command.
  static void expect_error(const Words& words, const std::string& says, const std::string& and_says = "") {
    const Finished f = run(words);
    std::string last = f.output;
    if (!last.empty()) last.pop_back();
    last.erase(0, last.rfind('\n') + 1);
    EXPECT_EQ(f.code, 1) << f.output;
    EXPECT_THAT(last, StartsWith("iwarp " + words.front()));
    EXPECT_THAT(last, AllOf(HasSubstr(says), HasSubstr(and_says)));
    EXPECT_THAT(f.output, AllOf(Not(HasSubstr("/usr/include")), Not(HasSubstr("[system:"))));
  }

  boost::asio::io_context io_;
  tcp::acceptor listener_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  const std::string port_ = std::to_string(listener_.local_endpoint().port());
  const std::string here_ = "127.0.0.1:" + port_;
};

TEST_F(SystemErrors, APortInUse) {
  const char* const says = "Address already in use";
  expect_error({"rping", "-s", "-a", "127.0.0.1", "-p", port_}, "cannot listen on " + here_, says);
  expect_error({"gateway", "--rdma-listen", here_, "--tcp", "127.0.0.1:1"}, "cannot listen on " + here_, says);
  expect_error({"gateway", "--tcp-listen", here_, "--rdma", "127.0.0.1:1"}, "cannot listen on " + here_, says);
  expect_error({"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", "--metrics", port_}, here_, says);
}

TEST_F(SystemErrors, AnAddressOfAnotherHost) {
  const char* const says = "Cannot assign requested address";
  expect_error({"rping", "-s", "-a", "192.0.2.1", "-p", "0"}, "cannot listen on 192.0.2.1:0", says);
  expect_error({"gateway", "--rdma-listen", "192.0.2.1:0", "--tcp", "127.0.0.1:1"}, "cannot listen on", says);
}

TEST_F(SystemErrors, APortWhereNothingListens) {
  listener_.close();
  expect_error({"rping", "-c", "-a", "127.0.0.1", "-p", port_}, here_, "Connection refused: nothing listens there");
  expect_error({"perf", "run", "write_bw", here_}, "Connection refused");
  expect_error({"top", "--once", port_}, "nothing listens at " + here_);
}

TEST_F(SystemErrors, ANameThatIsNone) {
  expect_error({"rping", "-c", "-a", "no.such.host.invalid"}, "cannot resolve the host name: ", "no.such.host.invalid");
  expect_error({"perf", "run", "write_bw", "no.such.host.invalid"}, "no.such.host.invalid");
  expect_error({"top", "no.such.host.invalid:1"}, "no.such.host.invalid");
}

TEST_F(SystemErrors, FilesThatCannotBeWritten) {
  const char* const file = "/no/such/folder/file";
  const char* const says = "cannot write /no/such/folder/file";
  for (const std::string flag : {"--trace", "--pcap"}) {
    expect_error({"rping", "-s", "-a", "127.0.0.1", "-p", "0", flag, file}, says, "No such file or directory");
    expect_error({"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", flag, file}, says,
                 "No such file or directory");
  }
  expect_error({"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", "--stats", file}, says,
               "No such file or directory");
  expect_error({"gateway", "--tcp-listen", "127.0.0.1:0", "--rdma", "127.0.0.1:1", "--json=" + std::string(file)}, says,
               "No such file or directory");
}

TEST_F(SystemErrors, CapturesThatCannotBeRead) {
  expect_error({"trace", "/no/such/capture"}, "cannot read /no/such/capture", "No such file or directory");
  expect_error({"trace", "/"}, "cannot read /");
  expect_error({"trace", "/dev/null"}, "cannot read /dev/null");
}

}  // namespace
}  // namespace iwarp::test
