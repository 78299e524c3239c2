// The engine of a process, which all handles share. Internal to tirpc.
#pragma once

#include "iwarp/cm/engine.h"

namespace iwarp::tirpc {

// It is never destroyed: threads may be in it until the process ends. A forked child has one of its own.
[[nodiscard]] cm::Engine& process_engine();

}  // namespace iwarp::tirpc
