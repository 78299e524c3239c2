// --llp sctp, where libusrsctp is not.
#include "tools/lower_layer.h"

namespace iwarp::tools {

bool has_sctp() {
  return false;
}

Result<std::unique_ptr<LowerLayer>> make_sctp_layer(cm::Engine&, const SctpOptions&) {
  return make_error(Errc::kInvalidArgument, "this iwarp was built without SCTP");
}

}  // namespace iwarp::tools
