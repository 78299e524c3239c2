#include "iwarp/gateway/siw_crc_trap.h"

#include <algorithm>

namespace iwarp::gateway {

SiwCrcTrap::Verdict SiwCrcTrap::ended(const boost::asio::ip::address& address, TimePoint now) {
  const std::lock_guard lock(mu_);
  auto host = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& h) { return h.address == address; });
  if (host == hosts_.end()) {
    if (hosts_.size() < kAddresses) {
      host = hosts_.emplace(hosts_.end());
    } else {
      host =
          std::min_element(hosts_.begin(), hosts_.end(), [](const Host& a, const Host& b) { return a.last < b.last; });
      *host = Host{};
    }
    host->address = address;
  }
  host->last = now;
  host->ends[host->seen++ % kEnds] = now;
  // Overwritten next, and so the oldest of them.
  if (host->seen < kEnds || now - host->ends[host->seen % kEnds] > kWithin) return Verdict::kSingle;
  if (host->told && now - *host->told < kTellAgain) return Verdict::kRecognised;
  host->told = now;
  return Verdict::kTell;
}

std::string explain_siw_crc_trap(const boost::asio::ip::address& address) {
  return "peer address=" + address.to_string() + " ended " + std::to_string(SiwCrcTrap::kEnds) +
         " connections or more within " + std::to_string(SiwCrcTrap::kWithin.count()) +
         " minutes with Terminate 2/0/2 (MPA CRC error): most likely it runs siw of Linux 6.1 or later, which with "
         "CRC misreads an FPDU whose trailer a TCP segment cuts; cure: a siw without that fault on that host "
         "(scripts/build-siw), or no CRC on both sides (here --crc prefer-off, or --crc off)";
}

}  // namespace iwarp::gateway
