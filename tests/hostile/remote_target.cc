#include "tests/hostile/remote_target.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

namespace iwarp::hostile {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int e = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); e != 0)
    throw std::runtime_error(host + ": " + ::gai_strerror(e));
  return {found, &::freeaddrinfo};
}

const char* lacks(Flavour flavour) {
  switch (flavour) {
    case Flavour::kDefault:
    case Flavour::kNoPeer2Peer:
      break;
    case Flavour::kPreferOff:
      return "it always wants CRC";
    case Flavour::kRevision1:
      return "it cannot be told to refuse enhanced Requests";
    case Flavour::kImpatient:
      return "it waits for ever";
    case Flavour::kAsksForMarkers:
      return "it does not ask for Markers";
    case Flavour::kSharedReceives:
      return "it does not say whether its receives are shared";
    case Flavour::kRfc7306:
      return "it does not know the messages of RFC 7306";
    case Flavour::kVersion2:
      return "it speaks version 1 of RPC-over-RDMA only";
    case Flavour::kDraft2005:
    case Flavour::kImpatient2005:
      return "it does not speak the draft of 2005";
    case Flavour::kBackwardChunks:
      return "needs a victim that connects";
  }
  return "no listener is of that flavour";
}

}  // namespace

test::RawTcp RemoteTarget::dial(Flavour flavour) {
  if (flavour != Flavour::kDefault && !flavours_.contains(flavour)) throw Inapplicable(lacks(flavour));
  const Addresses addresses = resolve(host_, port_);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  do {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      const int fd = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
      if (fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) == 0) return test::RawTcp(fd);
      if (fd >= 0) ::close(fd);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (std::chrono::steady_clock::now() < deadline);
  throw std::runtime_error("cannot connect to " + host_ + " port " + port_);
}

test::RawTcp RemoteTarget::hook(Flavour) {
  throw Inapplicable("needs a victim that connects");
}

}  // namespace iwarp::hostile
