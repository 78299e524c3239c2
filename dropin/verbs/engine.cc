// The one engine of the process.
#include <sched.h>

#include "dropin/verbs/capture.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/per_process.h"
#include "iwarp/mpa/crc32c.h"

namespace iwarp::dropin {

namespace {

// Who waits in place of a read(2) of a device does not look at the sockets for longer than a peer in one network takes
// to answer.
constexpr std::chrono::microseconds kSpin{100};

// Processors that this process may use.
int processors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

struct Automatic {
  Automatic() {
    (void)mpa::crc32c_is_accelerated();  // loads ISA-L now, not with the first message
    if (auto file = capture_file(settings()); !file.empty()) engine.set_tap_maker(capture_to(std::move(file)));
  }

  cm::Engine engine{cm::Engine::Mode::kAutomatic, processors() > 1 ? kSpin : std::chrono::microseconds{0}};
};
PerProcess<Automatic> automatic;

}  // namespace

cm::Engine& engine() {
  return automatic.get().engine;
}

}  // namespace iwarp::dropin
