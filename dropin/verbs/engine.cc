// The one engine of the process.
#include "dropin/verbs/interface.h"
#include "dropin/verbs/per_process.h"

namespace iwarp::dropin {

namespace {

struct Automatic {
  cm::Engine engine{cm::Engine::Mode::kAutomatic};
};
PerProcess<Automatic> automatic;

}  // namespace

cm::Engine& engine() {
  return automatic.get().engine;
}

}  // namespace iwarp::dropin
