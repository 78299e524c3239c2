#include "dropin/verbs/settings.h"

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "iwarp/stream/profile.h"

namespace iwarp::dropin {
namespace {

// A message waits so long for a Receive, as on InfiniBand, where it is sent again meanwhile.
constexpr std::chrono::seconds kReceiveWait{60};

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Settings read_settings() {
  Settings s;
  if (auto address = text_of("IWARP_ADDRESS"); !address.empty()) s.address = std::move(address);
  const auto crc = text_of("IWARP_CRC");
  if (crc == "on") s.crc = true;
  if (crc == "off") s.crc = false;
  s.profile = text_of("IWARP_PROFILE");
  if (text_of("IWARP_PRESENT") == "roce") s.present = Present::kRoce;
  s.rfc7306 = text_of("IWARP_RFC7306") == "on";
  const auto fpdu = text_of("IWARP_FPDU");
  if (fpdu == "emss") s.fpdu = mpa::FpduPolicy::kEmss;
  if (fpdu == "16k") s.fpdu = mpa::FpduPolicy::k16k;
  if (fpdu == "max") s.fpdu = mpa::FpduPolicy::kMax;
  s.trace = text_of("IWARP_TRACE");
  s.trace_process = static_cast<pid_t>(std::strtol(text_of("IWARP_TRACE_PID").c_str(), nullptr, 10));
  return s;
}

const Settings& settings() {
  static const auto* const kSettings = new Settings(read_settings());  // threads may ask until the process ends
  return *kSettings;
}

mpa::Policy startup_policy(const Settings& from) {
  mpa::Policy policy;
  if (const auto* profile = stream::find_profile(from.profile)) profile->apply(policy);
  if (from.crc) policy.crc = *from.crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
  return policy;
}

stream::Options stream_options(const Settings& from) {
  stream::Options options;
  if (const auto* profile = stream::find_profile(from.profile)) profile->apply(options);
  if (from.fpdu) options.fpdu = *from.fpdu;
  options.receive_wait = kReceiveWait;
  // Both ends are of this library then.
  options.outlive_peer = options.rfc7306 = options.send_immediate = from.present == Present::kRoce;
  return options;
}

}  // namespace iwarp::dropin
