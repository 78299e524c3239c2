// LowerLayer over MPA on TCP: cm/ as it is.
#pragma once

#include "iwarp/llp/lower_layer.h"

namespace iwarp::llp {

[[nodiscard]] std::unique_ptr<LowerLayer> make_over_tcp(cm::Engine& engine);

}  // namespace iwarp::llp
