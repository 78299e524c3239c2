// In place of over_sctp.cc where sctp_cm is not built.
#include "iwarp/llp/over_sctp.h"

namespace iwarp::llp {

bool has_sctp() {
  return false;
}

Result<std::unique_ptr<LowerLayer>> make_over_sctp(cm::Engine&, const SctpOptions&) {
  return make_error(Errc::kInvalidArgument, kNoSctp);
}

}  // namespace iwarp::llp
