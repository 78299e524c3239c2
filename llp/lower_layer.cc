#include "iwarp/llp/lower_layer.h"

#include "iwarp/llp/over_sctp.h"
#include "iwarp/llp/over_tcp.h"
#include "iwarp/verbs/own_process.h"

namespace iwarp::llp {

const char* name(Kind kind) {
  return kind == Kind::kTcp ? "tcp" : "sctp";
}

std::optional<Kind> kind_named(std::string_view wanted) {
  for (const Kind kind : {Kind::kTcp, Kind::kSctp}) {
    if (wanted == name(kind)) return kind;
  }
  return std::nullopt;
}

bool has(Kind kind) {
  return kind == Kind::kTcp || has_sctp();
}

Result<std::unique_ptr<LowerLayer>> LowerLayer::make(cm::Engine& engine, Kind kind, const SctpOptions& sctp) {
  if (!engine.operations()->alive()) return verbs::used_after_fork();
  if (kind == Kind::kSctp) return make_over_sctp(engine, sctp);
  return make_over_tcp(engine);
}

}  // namespace iwarp::llp
