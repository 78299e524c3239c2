#include "tools/top/document.h"

#include <algorithm>
#include <cmath>

namespace iwarp::tools::top {
namespace {

using Json = nlohmann::ordered_json;

// A counter that began anew counts from 0.
double rate(double now, double before, double seconds) {
  return (now >= before ? now - before : now) / seconds;
}

Json count(double value) {
  return static_cast<std::uint64_t>(value);
}

// Null: no Reply came, or it took longer than any bucket says.
Json milliseconds(const Program& now, const Program& before, double q) {
  const auto seconds = quantile(now.latency, now.replies < before.replies ? Histogram{} : before.latency, q);
  return seconds && std::isfinite(*seconds) ? Json(*seconds * 1e3) : Json();
}

Json of_program(const std::string& name, const Program& now, const Program& before, double seconds) {
  const auto per_second = [&](double Program::*what) { return rate(now.*what, before.*what, seconds); };
  return {{"program", name},
          {"calls", count(now.calls)},
          {"replies", count(now.replies)},
          {"failed", count(now.failed)},
          {"outstanding", count(now.outstanding)},
          {"calls_per_s", per_second(&Program::calls)},
          {"replies_per_s", per_second(&Program::replies)},
          {"call_bytes_per_s", per_second(&Program::call_bytes)},
          {"reply_bytes_per_s", per_second(&Program::reply_bytes)},
          {"p50_ms", milliseconds(now, before, 0.5)},
          {"p99_ms", milliseconds(now, before, 0.99)}};
}

Json of_listener(const Listener& now, const Listener& before, double seconds) {
  Json out = {{"name", now.name},
              {"direction", now.direction},
              {"local", now.local},
              {"backend", now.backend},
              {"connections", count(now.connections)},
              {"credits_used", count(now.credits_used)},
              {"credits_granted", count(now.credits_granted)},
              {"registered_bytes", count(now.registered_bytes)},
              {"refused", count(now.refused)},
              {"given_up", count(now.given_up)},
              {"siw_crc_faults", count(now.crc_faults)}};
  Json& spoken = out["connections_by_version"] = Json::object();
  for (const auto& [version, connections] : now.by_version) spoken[version] = count(connections);
  Json& octets = out["rdma_bytes_per_s"] = Json::object();
  for (const auto& [way, value] : now.rdma_bytes) {  // "write out"
    const auto was = before.rdma_bytes.find(way);
    std::string key = way;
    std::replace(key.begin(), key.end(), ' ', '_');
    octets[key] = rate(value, was == before.rdma_bytes.end() ? 0 : was->second, seconds);
  }
  Json& programs = out["programs"] = Json::array();
  for (const auto& [name, program] : now.programs) {
    const auto was = before.programs.find(name);
    programs.push_back(of_program(name, program, was == before.programs.end() ? Program{} : was->second, seconds));
  }
  return out;
}

}  // namespace

nlohmann::ordered_json document(const Page& now, const Page& before, double seconds) {
  Json out = {{"gateway_version", now.version}, {"seconds", seconds}};
  out["memory_limit_bytes"] = now.limit_bytes > 0 ? count(now.limit_bytes) : Json();
  Json& listeners = out["listeners"] = Json::array();
  const Listener none;
  for (const Listener& l : now.listeners) {
    const Listener* const was = before.find(l);
    listeners.push_back(of_listener(l, was != nullptr ? *was : none, seconds));
  }
  return out;
}

}  // namespace iwarp::tools::top
