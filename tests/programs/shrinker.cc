#include "tests/programs/shrinker.h"

#include <algorithm>
#include <functional>

#include "tests/programs/runner.h"

namespace iwarp::programs {
namespace {

using Fails = std::function<bool(const Program&)>;

bool drop_steps(Program& program, const Fails& fails) {
  bool any = false;
  for (std::size_t chunk = std::max<std::size_t>(program.steps.size() / 2, 1); chunk > 0; chunk /= 2) {
    for (std::size_t at = 0; at < program.steps.size();) {
      Program shorter = program;
      const auto first = shorter.steps.begin() + static_cast<std::ptrdiff_t>(at);
      shorter.steps.erase(first, first + static_cast<std::ptrdiff_t>(std::min(chunk, shorter.steps.size() - at)));
      if (fails(shorter)) {
        program = std::move(shorter);
        any = true;
      } else {
        at += chunk;
      }
    }
  }
  return any;
}

void simplify(Program& program, const Fails& fails) {
  const auto attempt = [&](const std::function<void(Program&)>& change) {
    Program simpler = program;
    change(simpler);
    if (fails(simpler)) program = std::move(simpler);
  };
  attempt([](Program& p) { p.setup.settle_cut = 0; });
  attempt([](Program& p) { p.setup.crc = true; });
  attempt([](Program& p) { p.setup.peer_to_peer = true; });
  attempt([](Program& p) { p.setup.relaxed = false; });
  for (std::size_t host = 0; host < kHosts; ++host) {
    attempt([&](Program& p) { p.setup.hosts[host].ask_markers = false; });
    attempt([&](Program& p) { p.setup.hosts[host].eager = false; });
    attempt([&](Program& p) { p.setup.hosts[host].one_cq = false; });
    attempt([&](Program& p) { p.setup.hosts[host].shares = false; });
    attempt([&](Program& p) { p.setup.hosts[host].addressing = 0; });
    attempt([&](Program& p) { p.setup.hosts[host].emss = HostSetup{}.emss; });
    attempt([&](Program& p) { p.setup.hosts[host].fpdu = HostSetup{}.fpdu; });
    attempt([&](Program& p) { p.setup.hosts[host].scratch = HostSetup{}.scratch; });
    attempt([&](Program& p) { p.setup.hosts[host].sq_depth = HostSetup{}.sq_depth; });
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    attempt([&](Program& p) { p.steps[i].fence = false; });
    attempt([&](Program& p) { p.steps[i].signaled = true; });
    attempt([&](Program& p) { p.steps[i].solicited = false; });
    attempt([&](Program& p) { p.steps[i].inlined = false; });
    attempt([&](Program& p) { p.steps[i].with_next = false; });
    attempt([&](Program& p) { p.steps[i].cut = 0; });
    attempt([&](Program& p) { p.steps[i].pieces.clear(); });
    attempt([&](Program& p) {
      for (Piece& piece : p.steps[i].pieces) piece.length = std::min(piece.length, 8U);
    });
  }
}

}  // namespace

Program shrink(Program program, Fault fault) {
  const auto fails = [&](const Program& p) { return !run(p, fault).fault.empty(); };
  while (drop_steps(program, fails)) {
  }
  simplify(program, fails);
  while (drop_steps(program, fails)) {
  }
  return program;
}

}  // namespace iwarp::programs
