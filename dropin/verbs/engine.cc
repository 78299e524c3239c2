// The one engine of the process.
#include "dropin/verbs/capture.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/per_process.h"
#include "iwarp/mpa/crc32c.h"

namespace iwarp::dropin {

namespace {

struct Automatic {
  Automatic() {
    (void)mpa::crc32c_is_accelerated();  // loads ISA-L now, not with the first message
    if (auto file = capture_file(settings()); !file.empty()) engine.set_tap_maker(capture_to(std::move(file)));
  }

  cm::Engine engine{cm::Engine::Mode::kAutomatic};
};
PerProcess<Automatic> automatic;

}  // namespace

cm::Engine& engine() {
  return automatic.get().engine;
}

}  // namespace iwarp::dropin
