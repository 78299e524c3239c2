#include "iwarp/cm/system_cause.h"

#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>

namespace iwarp::cm {
namespace {

// Null: nobody knows.
const char* text_of(const boost::system::error_code& failed) {
  const bool errno_value =
      failed.category() == boost::system::system_category() || failed.category() == boost::system::generic_category();
  return errno_value ? ::strerrordesc_np(failed.value()) : nullptr;
}

Error other(const boost::system::error_code& failed, const char* otherwise) {
  const char* const text = text_of(failed);
  return make_error(Errc::kSystem, text != nullptr ? text : otherwise);
}

constexpr const char* kTooManyFiles = "Too many open files: raise the limit (ulimit -n)";
constexpr const char* kNoFamily = "Address family not supported by protocol: this host has no IPv6, or no IPv4";

}  // namespace

Error listen_error(const boost::system::error_code& failed) {
  switch (failed.value()) {
    case EADDRINUSE:
      return make_error(Errc::kSystem, "Address already in use: choose another port, or end who listens there");
    case EACCES:
      return make_error(Errc::kSystem, "Permission denied: a port below 1024 needs root or CAP_NET_BIND_SERVICE");
    case EADDRNOTAVAIL:
      return make_error(Errc::kSystem, "Cannot assign requested address: it is not an address of this host");
    case EAFNOSUPPORT:
      return make_error(Errc::kSystem, kNoFamily);
    case EMFILE:
      return make_error(Errc::kSystem, kTooManyFiles);
    default:
      return other(failed, "the system does not let this process listen");
  }
}

Error connect_error(const boost::system::error_code& failed) {
  switch (failed.value()) {
    case ECONNREFUSED:
      return make_error(Errc::kConnectionRefused, "Connection refused: nothing listens there");
    case EHOSTUNREACH:
      return make_error(Errc::kSystem, "No route to host: check the address, the network and its firewalls");
    case ENETUNREACH:
      return make_error(Errc::kSystem, "Network is unreachable: this host has no route to that address");
    case ETIMEDOUT:
      return make_error(Errc::kTimeout, "Connection timed out: check the address, the network and its firewalls");
    case EACCES:
    case EPERM:
      return make_error(Errc::kSystem, "Permission denied: a firewall of this host, or a port below 1024 without root");
    case EADDRINUSE:
      return make_error(Errc::kSystem, "Address already in use: choose another local port");
    case EADDRNOTAVAIL:
      return make_error(Errc::kSystem,
                        "Cannot assign requested address: the local address is not one of this host, or no port is "
                        "free");
    case EAFNOSUPPORT:
      return make_error(Errc::kSystem, kNoFamily);
    case EMFILE:
      return make_error(Errc::kResource, kTooManyFiles);
    default:
      return other(failed, "TCP connect failed");
  }
}

Error resolve_error(const boost::system::error_code& failed) {
  if (failed == boost::asio::error::host_not_found_try_again)
    return make_error(Errc::kSystem, "cannot resolve the host name: no answer of a name server; try again");
  if (failed == boost::asio::error::host_not_found || failed == boost::asio::error::no_data)
    return make_error(Errc::kSystem, "cannot resolve the host name: Host not found; check its spelling");
  return make_error(Errc::kSystem, "cannot resolve the host name: the look-up failed");
}

}  // namespace iwarp::cm
