#include "tools/perf/control.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace iwarp::tools::perf {
namespace {
constexpr std::size_t kMaxLine = 64 * 1024;

// A peer that is silent for so long is probed, and given up when it answers nothing for the other time.
constexpr int kIdleSeconds = 15;
constexpr int kGiveUpMilliseconds = 60'000;

void set(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0)
    throw std::runtime_error(std::string("cannot set TCP socket options: ") + std::strerror(errno));
}

void prepare(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kIdleSeconds);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kGiveUpMilliseconds);
}

}  // namespace

Control::Control(const std::string& host, const std::string& port) {
  stream_.expires_after(std::chrono::seconds{10});
  stream_.connect(host, port);
  if (!stream_)
    throw std::runtime_error("cannot connect to " + host + " port " + port + ": " + stream_.error().message() +
                             "; is `iwarp perf serve` running there?");
  prepare(stream_.socket().native_handle());
}

Control::Control(boost::asio::ip::tcp::socket socket) : stream_(std::move(socket)) {
  prepare(stream_.socket().native_handle());
}

void Control::send(const nlohmann::json& message) {
  stream_.expires_after(std::chrono::seconds{10});
  stream_ << message.dump() << '\n' << std::flush;
  if (!stream_) throw std::runtime_error("the other end of the test is gone: " + stream_.error().message());
}

std::optional<nlohmann::json> Control::receive(std::chrono::steady_clock::duration patience) {
  stream_.expires_after(patience);
  std::string line;
  for (char c = 0; stream_.get(c) && c != '\n';) {
    line += c;
    if (line.size() > kMaxLine) throw std::runtime_error("control message is too long");
  }
  if (!stream_) {
    if (stream_.error() == boost::asio::error::eof || stream_.error() == boost::asio::error::connection_reset)
      return std::nullopt;
    throw std::runtime_error("no answer on the control connection: " + stream_.error().message());
  }
  auto message = nlohmann::json::parse(line, nullptr, false);
  if (!message.is_object()) throw std::runtime_error("control message is no JSON object");
  return message;
}

nlohmann::json Control::ask(const nlohmann::json& message, std::chrono::seconds patience) {
  std::string failed;
  try {
    send(message);
  } catch (const std::runtime_error& e) {
    failed = e.what();
    stream_.clear();
  }
  // A server that has no time for us says so and closes, which may be before we have asked anything.
  auto answer = receive(patience);
  if (!failed.empty() && !(answer && answer->contains("error"))) throw std::runtime_error(failed);
  if (!answer) throw std::runtime_error("the other end of the test has closed the control connection");
  if (answer->contains("error")) throw std::runtime_error("the other end: " + answer->at("error").get<std::string>());
  return std::move(*answer);
}

std::string Control::remote_host() const {
  boost::system::error_code ec;
  return const_cast<Stream&>(stream_).socket().remote_endpoint(ec).address().to_string();  // NOLINT: socket() has no
                                                                                           // const form
}

void Control::shut() {
  boost::system::error_code ec;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_both, ec);
}

}  // namespace iwarp::tools::perf
