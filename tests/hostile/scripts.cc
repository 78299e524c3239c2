#include <algorithm>

#include "tests/hostile/script.h"

namespace iwarp::hostile {

std::vector<Script> scripts(std::string_view role) {
  std::vector<Script> out;
  const auto add = [&](std::span<const Script> some) { out.insert(out.end(), some.begin(), some.end()); };
  if (role == "mpa responder") add(mpa_responder_scripts());
  if (role == "mpa initiator") add(mpa_initiator_scripts());
  if (role == "rdma receiver") {
    add(fpdu_scripts());
    add(ddp_scripts());
    add(rdmap_scripts());
    add(rdma_read_scripts());
    add(rfc7306_scripts());
  }
  if (role == "rpc responder") {
    add(rpc_responder_scripts());
    add(rpc_chunk_scripts());
    add(rpc_2005_responder_scripts());
  }
  if (role == "rpc requester") {
    add(rpc_requester_scripts());
    add(rpc_write_chunk_scripts());
    add(rpc_2005_requester_scripts());
  }
  return out;
}

std::optional<Script> find_script(std::string_view role, std::string_view name) {
  for (const Script& s : scripts(role)) {
    if (s.name == name) return s;
  }
  return std::nullopt;
}

}  // namespace iwarp::hostile
