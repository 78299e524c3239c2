// From what the operator said to what a gateway does: the checks that look at more than one flag or key.
#pragma once

#include <stdexcept>
#include <string>

#include "iwarp/gateway/service.h"
#include "tools/gateway_flags.h"

namespace iwarp::tools {

// What is wrong, and what would be right. `option` is the flag ("--tcp"), or empty where it is not one alone.
class SettingError : public std::runtime_error {
 public:
  SettingError(std::string option, const std::string& text) : std::runtime_error(text), option_(std::move(option)) {}
  [[nodiscard]] const std::string& option() const { return option_; }

 private:
  std::string option_;
};

// The part of the process, before its listeners are known: see complete().
[[nodiscard]] gateway::ProcessOptions process_options(const ProcessFlags& flags, const LimitFlags& limits);
// Throws SettingError.
[[nodiscard]] gateway::ListenerSettings listener_settings(const std::string& name, const ListenerFlags& flags,
                                                          const LimitFlags& limits, const ProcessFlags& process);
// What the process has on account of its listeners.
void complete(gateway::ServiceSettings& settings);

// "127.0.0.1:20049 for RPC-over-RDMA, forwarding to 127.0.0.1:2049 over TCP; allowed: ..."; `at`: where it listens.
[[nodiscard]] std::string describe(const gateway::ListenerSettings& settings, const boost::asio::ip::tcp::endpoint& at);
// "nfs: ", or nothing for a listener without a name.
[[nodiscard]] std::string log_prefix(const std::string& name);

}  // namespace iwarp::tools
