// `iwarp top` against a gateway, both as commands; on a terminal, and not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/tools/subprocess.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A gateway that nobody uses, and where it serves its metrics.
class Watched {
 public:
  Watched() : gateway_({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1", "--metrics", "0"}) {
    EXPECT_TRUE(gateway_.wait_for("/metrics\n") && gateway_.wait_for("listening on")) << gateway_.output();
    std::smatch found;
    const std::string& text = gateway_.output();
    EXPECT_TRUE(std::regex_search(text, found, std::regex("http://(127.0.0.1:([0-9]+))/metrics")));
    at_ = found[1];
    port_ = found[2];
  }
  [[nodiscard]] const std::string& at() const { return at_; }
  [[nodiscard]] const std::string& port() const { return port_; }

 private:
  Subprocess gateway_;
  std::string at_, port_;
};

TEST(Top, PrintsOneTableWithoutATerminal) {
  const Watched gateway;
  for (const auto& arguments : {std::vector<std::string>{"top", "--interval", "0.1", gateway.at()},
                                std::vector<std::string>{"top", "--once", "--interval", "0.1", gateway.port()}}) {
    const Finished f = run(arguments);
    EXPECT_EQ(f.code, 0) << f.output;
    EXPECT_THAT(f.output, HasSubstr("rdma-to-tcp"));
    EXPECT_THAT(f.output, HasSubstr("-> 127.0.0.1:1"));
    EXPECT_THAT(f.output, HasSubstr("CALLS/S"));
    EXPECT_THAT(f.output, HasSubstr("FAILED"));
    EXPECT_THAT(f.output, Not(HasSubstr("\x1b")));
  }
}

TEST(Top, PrintsTheTableAsJson) {
  const Watched gateway;
  const Finished f = run({"top", "--interval", "0.1", gateway.at(), "--json"});
  EXPECT_EQ(f.code, 0) << f.output;
  const auto document = nlohmann::json::parse(f.output);
  EXPECT_EQ(document.at("iwarp").at("command"), "top");
  EXPECT_EQ(document.at("gateway"), gateway.at());
  EXPECT_GT(document.at("seconds"), 0.0);
  const auto& listener = document.at("listeners").at(0);
  EXPECT_EQ(listener.at("backend"), "127.0.0.1:1");
  EXPECT_EQ(listener.at("connections"), 0);
  EXPECT_EQ(listener.at("rdma_bytes_per_s").at("write_out"), 0.0);
  EXPECT_TRUE(listener.at("programs").at(0).at("p50_ms").is_null());
}

TEST(Top, SaysWhatIsWrong) {
  boost::asio::io_context io;
  using boost::asio::ip::tcp;
  tcp::acceptor unused(io, {boost::asio::ip::address_v4::loopback(), 0});
  const std::string port = std::to_string(unused.local_endpoint().port());
  unused.close();
  const Finished f = run({"top", "--once", port});
  EXPECT_EQ(f.code, 1);
  EXPECT_EQ(f.output,
            "iwarp top: nothing listens at 127.0.0.1:" + port + ": start the gateway with --metrics " + port + "\n");
  const Finished host = run({"top", "no.such.host.invalid:1"});
  EXPECT_EQ(host.code, 1);
  EXPECT_THAT(host.output, HasSubstr("no.such.host.invalid"));
  EXPECT_EQ(run({"top", "1:2:3"}).code, 2);
  EXPECT_EQ(run({"top"}).code, 2);

  // An RDMA listener is no HTTP server.
  Subprocess gateway({"gateway", "--rdma-listen", "127.0.0.1:0", "--tcp", "127.0.0.1:1"});
  const Finished rdma = run({"top", "--once", gateway.listening_port()});
  EXPECT_EQ(rdma.code, 1);
  EXPECT_THAT(rdma.output, HasSubstr("iwarp top: 127.0.0.1:"));
}

// On a terminal of 70 columns: what it wrote until it ended.
struct OnTerminal {
  std::string output;
  int code = -1;
};
OnTerminal on_terminal(const std::vector<std::string>& arguments, const std::string& until, const std::string& keys) {
  OnTerminal out;
  winsize size{};
  size.ws_col = 70;
  size.ws_row = 20;
  int master = -1;
  std::vector<char*> words = {const_cast<char*>(IWARP_COMMAND)};
  for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  bool pressed = false;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    pollfd waits{master, POLLIN, 0};
    if (::poll(&waits, 1, 100) <= 0) continue;
    std::array<char, 4096> chunk{};
    const auto n = ::read(master, chunk.data(), chunk.size());
    if (n <= 0) break;  // EIO: the other end is closed
    out.output.append(chunk.data(), static_cast<std::size_t>(n));
    if (!pressed && out.output.find(until) != std::string::npos) {
      pressed = true;
      EXPECT_EQ(::write(master, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
    }
  }
  EXPECT_TRUE(pressed) << out.output;
  ::kill(child, SIGKILL);  // if it still runs
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) out.code = WEXITSTATUS(status);
  ::close(master);
  return out;
}

TEST(Top, GivesTheTerminalBack) {
  const Watched gateway;
  for (const std::string keys : {"q", "\x03"}) {  // Ctrl-C
    const auto top = on_terminal({"top", "--interval", "0.1", gateway.at()}, "CALLS/S", keys);
    EXPECT_EQ(top.code, 0) << top.output;
    EXPECT_THAT(top.output, HasSubstr("\x1b[?1049h"));
    EXPECT_THAT(top.output, ::testing::EndsWith("\x1b[?25h\x1b[?1049l"));
    EXPECT_THAT(top.output, HasSubstr("q ends"));
    EXPECT_THAT(top.output, Not(HasSubstr("FAILED")));  // no room for that column
  }
}

}  // namespace
}  // namespace iwarp::test
