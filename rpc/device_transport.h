// A device of rdma-core as what carries RPCs: an RNIC, RoCE, or the kernel's siw, below the same Client and Server.
// libibverbs and librdmacm are loaded when a device is opened; a program that opens none does without them.
//
//   const auto [rnic, error] = open_device(engine, "siw0");
//   if (!rnic) return complain(error);
//   server.listen(on_device(rnic, {.endpoint = {tcp::v4(), 20049}})).value();
//   Client client(engine, over_device(rnic, {.host = "192.0.2.1"}));
//
// Messages lie in memory that the device has pinned, and the kernel counts chunks once more while the peer may reach
// them: RLIMIT_MEMLOCK should admit four times `memory_bytes` of each connection, and its Receives (LimitMEMLOCK=,
// ulimit -l). Where it does not, Calls wait for others of their connection that use it; where none does, they fail
// with kResource.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "iwarp/cm/engine.h"
#include "iwarp/rpc/channel.h"

namespace iwarp::rpc {

// An open device. When it goes and comes back under its name, as siw that is deleted and made anew, its connections end
// and it is taken up again: servers look for it every 5 s, clients when they connect. Thread-safe; so are copies of
// what open_device() gives.
class RdmaDevice {
 public:
  virtual ~RdmaDevice() = default;
  RdmaDevice(const RdmaDevice&) = delete;
  RdmaDevice& operator=(const RdmaDevice&) = delete;
  // As rdma-core lists it (`rdma link`).
  [[nodiscard]] virtual const std::string& name() const = 0;

 private:
  friend class HomeDevice;  // it is one, and there is no other kind
  RdmaDevice() = default;
};

// What open_device() gives.
struct OpenedDevice {
  std::shared_ptr<RdmaDevice> device{};  // null: there is none
  std::string error{};                   // in its place: which devices there are, or what is to be installed
};
// The device of that name. `engine` does all I/O of its connections but what their owners do themselves; it must
// outlive it and the transports and channels made with it, and had better be that of the Clients and Servers. A
// borrowed io_context is run by a single thread, which also makes and ends servers. A process opens a device once: for
// the same engine it gets the same object again while there is one, for another engine an error.
[[nodiscard]] OpenedDevice open_device(cm::Engine& engine, const std::string& name);

// Where a client connects to. The route to that address must be over the device.
struct DeviceTarget {
  std::string host{};          // name or address, IPv4 or IPv6; all addresses of a name are tried, one after the other
  std::uint16_t port = 20049;  // 1 to 65535; 20049 is that of NFS/RDMA
  // Address of this host to connect from. Default: as the route has it.
  std::optional<boost::asio::ip::address> local{};
  // RDMA Reads of the server that are admitted at a time, and those that this side may have outstanding, 1 to 255; the
  // device may have fewer. Default 32. Fewer slow down long Calls, or long Replies of the draft of 2005.
  std::size_t ird = 32, ord = 32;
  // For each address: to find the way and to connect. Default 10 s, 1 ms or more. Less gives up slow networks.
  std::chrono::milliseconds timeout{10000};
};
// To that server. The peer cannot invalidate what a Client exposes there, since rdma-core has no such right for memory
// of programs: RequesterOptions::remote_invalidation counts as off. Errors of connecting, beside those of channel.h:
// kInvalidArgument (the way to that address is not over the device), kTimeout, kConnectionRefused, kPeerRejected
// (devices do not tell "nobody listens" from "refused"), kResource (locked memory, descriptors), kSystem with what
// rdma-core says.
[[nodiscard]] std::shared_ptr<ClientTransport> over_device(std::shared_ptr<RdmaDevice> device, DeviceTarget server);

// Where a server listens.
struct DeviceAddress {
  boost::asio::ip::tcp::endpoint endpoint{};  // an address of the device, or any; port 0: a free one
  std::size_t ird = 32, ord = 32;             // as those of DeviceTarget; bounded by what the client has, too
};
// Of a listener.
class DeviceServer : public ServerTransport {
 public:
  // The address that it listens at, with the port that the system picked; of no meaning before listen().
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
};
// Listens there from listen() on, which waits for the engine's thread: hold no lock that a handler takes. Its errors:
// kSystem (the address is in use, or no device's), kInvalidArgument (it is another device's), kResource. Peers that
// come over another device are refused.
[[nodiscard]] std::shared_ptr<DeviceServer> on_device(std::shared_ptr<RdmaDevice> device, DeviceAddress where);

}  // namespace iwarp::rpc
