#include "tools/perf/control.h"

#include <optional>
#include <stdexcept>

#include "tools/perf/tcp_socket.h"

namespace iwarp::tools::perf {
namespace {
constexpr std::size_t kMaxLine = 64 * 1024;

void prepare(boost::asio::basic_socket<boost::asio::ip::tcp>& socket) {
  socket.set_option(boost::asio::ip::tcp::no_delay(true));
  give_up_vanished_peer(socket.native_handle());
}

}  // namespace

Control::Control(const std::string& host, const std::string& port) {
  stream_.expires_after(std::chrono::seconds{10});
  stream_.connect(host, port);
  if (!stream_)
    throw std::runtime_error("cannot connect to " + host + " port " + port + ": " + stream_.error().message() +
                             "; is `iwarp perf serve` running there?");
  prepare(stream_.socket());
}

Control::Control(boost::asio::ip::tcp::socket socket) : stream_(std::move(socket)) {
  prepare(stream_.socket());
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

void Control::shut() {
  boost::system::error_code ec;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_both, ec);
}

}  // namespace iwarp::tools::perf
