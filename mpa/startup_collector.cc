#include "iwarp/mpa/startup_collector.h"

#include <algorithm>

namespace iwarp::mpa {

StartupCollector::Step StartupCollector::feed(ConstBytes bytes) {
  std::size_t consumed = 0;
  while (true) {
    StartupParse result = parser_(bytes_, max_private_data_bytes_);
    const auto* more = std::get_if<NeedMore>(&result);
    if (more == nullptr || consumed == bytes.size()) return {consumed, std::move(result)};
    const ConstBytes piece = bytes.subspan(consumed, std::min(more->at_least - bytes_.size(), bytes.size() - consumed));
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    consumed += piece.size();
  }
}

}  // namespace iwarp::mpa
