// The lower layer of a command: when it goes, peers still hear of the end of their connections.
#pragma once

#include <chrono>
#include <memory>

#include "iwarp/llp/lower_layer.h"

namespace iwarp::tools {

struct Farewell {
  static constexpr std::chrono::milliseconds kPatience{500};
  void operator()(llp::LowerLayer* layer) const {
    (void)layer->wait_closed(kPatience);
    delete layer;
  }
};
using LayerHandle = std::unique_ptr<llp::LowerLayer, Farewell>;

}  // namespace iwarp::tools
