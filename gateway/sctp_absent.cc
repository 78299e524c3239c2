// In place of sctp_stack.cc where libusrsctp was missing.
#include "iwarp/gateway/rdma_provider.h"

namespace iwarp::gateway {

Parsed<std::shared_ptr<RdmaProvider>> open_sctp(cm::Engine&) {
  return {std::nullopt, "this program was built without SCTP: build it with the package libusrsctp-dev"};
}

}  // namespace iwarp::gateway
