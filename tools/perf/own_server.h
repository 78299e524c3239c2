// `iwarp perf serve` as a child on loopback, for `iwarp perf run` without a peer.
#pragma once

#include <sys/types.h>

#include <string>

namespace iwarp::tools::perf {

class OwnServer {
 public:
  // Starts this same program. Throws std::runtime_error when it does not come up.
  OwnServer();
  // Ends it.
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;
  // Of its control connection, on 127.0.0.1.
  [[nodiscard]] const std::string& port() const { return port_; }

 private:
  pid_t pid_ = -1;
  std::string port_;
};

}  // namespace iwarp::tools::perf
