// The one engine of the process.
#include "dropin/verbs/interface.h"

namespace iwarp::dropin {

cm::Engine& engine() {
  // Never destroyed: threads of the application may be in a call of it until the process ends.
  static auto* const kEngine = new cm::Engine(cm::Engine::Mode::kAutomatic);
  return *kEngine;
}

}  // namespace iwarp::dropin
