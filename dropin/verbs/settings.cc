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

Settings read() {
  Settings s;
  if (auto address = text_of("IWARP_ADDRESS"); !address.empty()) s.address = std::move(address);
  const auto crc = text_of("IWARP_CRC");
  if (crc == "on") s.crc = true;
  if (crc == "off") s.crc = false;
  s.profile = text_of("IWARP_PROFILE");
  if (text_of("IWARP_PRESENT") == "roce") s.present = Present::kRoce;
  s.rfc7306 = text_of("IWARP_RFC7306") == "on";
  s.trace = text_of("IWARP_TRACE");
  return s;
}

}  // namespace

const Settings& settings() {
  static const auto* const kSettings = new Settings(read());  // threads may ask until the process ends
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
  options.receive_wait = kReceiveWait;
  // Both ends are of this library then.
  options.outlive_peer = options.rfc7306 = options.send_immediate = from.present == Present::kRoce;
  return options;
}

}  // namespace iwarp::dropin
