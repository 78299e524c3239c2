// The options of a caller, as far as its struct goes, and what they mean for the layers below. Internal to tirpc.
#pragma once

#include <chrono>
#include <string>

#include "iwarp/mpa/policy.h"
#include "iwarp/rpc/client.h"
#include "iwarp/rpc/server.h"
#include "iwarp/tirpc/rpcrdma.h"

namespace iwarp::tirpc {

struct Settings {
  rpc::ClientOptions client{};
  rpc::ServerOptions server{};
  std::chrono::milliseconds timeout{10000};
  mpa::Policy policy{};  // of connections, at either end
  std::string rpcbind_socket = "/run/rpcbind.sock";
};

// Reads `options->size` octets of them at most; null: all defaults. kInvalidArgument: a value out of range, or a size
// that no version of the struct has had.
[[nodiscard]] Result<Settings> read_options(const rpcrdma_options* options);

}  // namespace iwarp::tirpc
