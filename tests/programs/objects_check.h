// What queue pairs, STags and shared receive queues say of themselves.
#pragma once

#include "tests/programs/hosts.h"
#include "tests/programs/model.h"
#include "tests/programs/sabotage.h"

namespace iwarp::programs {

// Tells the model what is not as it must be, when nothing moves and all was polled.
void check_objects(Hosts& hosts, Model& model, Saboteur& saboteur);

}  // namespace iwarp::programs
