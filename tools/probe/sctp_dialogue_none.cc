// `iwarp probe --llp sctp`, where libusrsctp is not.
#include "tools/probe/sctp_dialogue.h"

namespace iwarp::tools::probe {

Result<std::unique_ptr<SctpDialogue>> make_sctp_dialogue(const SctpDialogueOptions&) {
  return make_error(Errc::kInvalidArgument, "this iwarp was built without SCTP");
}

}  // namespace iwarp::tools::probe
