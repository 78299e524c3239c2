// The control connection of a performance test: JSON objects, one per line, over plain TCP. Blocking; one thread. A
// peer whose machine answers no more is given up after a minute or so.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace iwarp::tools::perf {

class Control {
 public:
  using Stream = boost::asio::ip::tcp::iostream;

  // Connects. Throws std::runtime_error that names the address.
  Control(const std::string& host, const std::string& port);
  // Takes an accepted connection over.
  explicit Control(boost::asio::ip::tcp::socket socket);

  // Throws std::runtime_error when the peer is gone.
  void send(const nlohmann::json& message);
  // The next message; std::nullopt when the peer has closed. Throws std::runtime_error on a time-out, on a line longer
  // than 64 KiB, or on what is no JSON object.
  [[nodiscard]] std::optional<nlohmann::json> receive(std::chrono::steady_clock::duration patience);
  // send() and receive(); throws when the answer has an "error", with its text. That of a peer which has closed already
  // is heard as well.
  nlohmann::json ask(const nlohmann::json& message, std::chrono::seconds patience = std::chrono::seconds{15});
  // From another thread: makes receive() return.
  void shut();

 private:
  Stream stream_;
};

}  // namespace iwarp::tools::perf
