#include "tools/probe_flags.h"

#include <iostream>

#include "iwarp/rpcrdma/private_data.h"
#include "tools/command.h"
#include "tools/standard_output.h"

namespace iwarp::tools {
namespace {

using probe::Verdict;

constexpr int kExitDeviations = 3;
constexpr int kExitUnreachable = 4;
constexpr int kExitNoMpa = 5;
constexpr int kExitRefused = 6;
constexpr std::size_t kMaxPrivateData = mpa::kMaxPrivateDataBytes - mpa::kEnhancedDataBytes;

}  // namespace

std::chrono::milliseconds ProbeFlags::timeout() const {
  return std::chrono::milliseconds(static_cast<long>(timeout_seconds * 1000));
}

std::vector<std::byte> ProbeFlags::private_data_at(std::uint16_t port) const {
  if (private_data == "none" || (private_data == "auto" && port != kNfsRdmaPort)) return {};
  if (private_data == "auto" || private_data == "rpcrdma") {
    // Not a promise that is kept: no RPC follows. Remote invalidation is not claimed.
    const auto message = rpcrdma::PrivateData{.send_bytes = 4096, .receive_bytes = 4096}.encode();
    return {message.begin(), message.end()};
  }
  const std::string& digits = private_data;
  const bool hex = digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos && digits.size() % 2 == 0;
  if (!hex || digits.size() / 2 > kMaxPrivateData)
    throw CLI::ValidationError("--private-data", "'" + digits + "' is not none, rpcrdma or up to 508 octets in hex");
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return out;
}

void ProbeFlags::print(const std::string& text) const {
  if (json.on_standard_output()) return;
  std::cout << text;
  check_standard_output();
}

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHealthy:
      return kExitOk;
    case Verdict::kDeviations:
      return kExitDeviations;
    case Verdict::kUnreachable:
      return kExitUnreachable;
    case Verdict::kNoMpa:
      return kExitNoMpa;
    case Verdict::kRefused:
      break;
  }
  return kExitRefused;
}

}  // namespace iwarp::tools
