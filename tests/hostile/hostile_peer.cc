// hostile_peer: runs the scripts of tests/hostile against any listener and tells what it saw (README.md).
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "tests/hostile/case_list.h"
#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/remote_target.h"
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

struct Flags {
  std::string target, role, glob = "*", cases = IWARP_HOSTILE_CASES, report;
  unsigned settle = 0;  // ms
  std::vector<std::string> flavours;
  bool resume = false;
};

const std::map<std::string, Flavour> kFlavours = {{"prefer-off", Flavour::kPreferOff},
                                                  {"impatient", Flavour::kImpatient},
                                                  {"revision-1", Flavour::kRevision1},
                                                  {"markers", Flavour::kAsksForMarkers},
                                                  {"shared-receives", Flavour::kSharedReceives}};

bool wanted(const Flags& flags, const Case& c) {
  const bool rdma = c.role == "mpa responder" || c.role == "rdma receiver";
  if (not_applicable(c.expected) || !(flags.role == "rdma" ? rdma : c.role == "rpc responder")) return false;
  return ::fnmatch(flags.glob.c_str(), c.script.c_str(), 0) == 0 ||
         ::fnmatch(flags.glob.c_str(), c.requirement.c_str(), 0) == 0;
}

Reaction see(Target& target, const Script& script) {
  try {
    return script.run(target);
  } catch (const Inapplicable& reason) {
    return std::string("skipped: ") + reason.what();
  } catch (const std::exception& error) {
    return std::string("failed: ") + error.what();
  }
}

// Whether an honest peer is served now.
bool serves(Target& target, const std::string& role) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      if (role == "rdma") {
        Peer peer = open(target);
        if (verdict(peer) == kIgnore) return true;
      } else {
        Peer peer = open_rpc(target);
        if (rpc_verdict(peer, 0) == kIgnore) return true;
      }
    } catch (const std::exception&) {
    }
  }
  return false;
}

using Key = std::pair<std::string, std::string>;  // role and script: many rows share one

// What an earlier run saw, and how many rows it wrote.
std::map<Key, Reaction> read_report(const std::string& file, std::size_t& rows) {
  std::map<Key, Reaction> seen;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line); ++rows) {
    std::istringstream fields(line);
    std::array<std::string, 5> f;
    for (std::string& field : f) std::getline(fields, field, '\t');
    seen[{f[1], f[2]}] = f[4];
  }
  return seen;
}

std::set<Flavour> flavours(const Flags& flags) {
  std::set<Flavour> out;
  for (const std::string& word : flags.flavours) out.insert(kFlavours.at(word));
  return out;
}

// Exit status: 0 if all that was seen is what was expected; 3 if the victim serves nobody any more. Throws when no case
// matches.
int run(const Flags& flags) {
  const auto colon = flags.target.rfind(':');
  RemoteTarget target(flags.target.substr(0, colon), flags.target.substr(colon + 1),
                      std::chrono::milliseconds(flags.settle), flavours(flags));
  std::size_t written = 0;
  std::map<Key, Reaction> seen;
  if (flags.resume) seen = read_report(flags.report, written);
  std::ofstream report;
  if (!flags.report.empty()) {
    report.open(flags.report, flags.resume ? std::ios::app : std::ios::trunc);
    if (!report) throw std::runtime_error("cannot write " + flags.report);
  }
  std::size_t same = 0, different = 0, skipped = 0;
  for (const Case& c : read_cases(flags.cases)) {
    if (!wanted(flags, c)) continue;
    const Key key{c.role, c.script};
    bool dead = false;
    if (!seen.contains(key)) {
      const auto script = find_script(c.role, c.script);
      if (!script) throw std::runtime_error("no script " + c.script);
      Reaction& reaction = seen[key] = see(target, *script);
      dead = !reaction.starts_with("skipped: ") && !serves(target, flags.role);
      if (dead) reaction += ", then nobody is served any more";
    }
    const Reaction& got = seen[key];
    ++(got == c.expected ? same : got.starts_with("skipped: ") ? skipped : different);
    const std::string line = c.requirement + '\t' + c.role + '\t' + c.script + '\t' + c.expected + '\t' + got + '\n';
    std::cout << line << std::flush;
    if (written > 0) {
      --written;
    } else if (report.is_open()) {
      report << line << std::flush;
    }
    if (dead) return 3;
  }
  if (same + different + skipped == 0) throw std::runtime_error("no case matches " + flags.glob);
  std::cout << same << " as expected, " << different << " otherwise, " << skipped << " skipped\n";
  return different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace iwarp::hostile

int main(int argc, char** argv) {
  iwarp::hostile::Flags flags;
  CLI::App app("Breaks the rules of iWARP and RPC-over-RDMA, one at a time, and tells what the listener did about it");
  app.add_option("--target", flags.target, "HOST:PORT of the listener")->required()->check([](const std::string& s) {
    return s.find(':') == std::string::npos ? std::string("wants HOST:PORT") : std::string();
  });
  app.add_option("--role", flags.role, "What listens: an rping server, or an NFS version 3 server")
      ->required()
      ->check(CLI::IsMember({"rdma", "rpcrdma"}));
  app.add_option("--case", flags.glob, "Only scripts, or requirements, that match")->capture_default_str();
  app.add_option("--cases", flags.cases, "List of cases")->capture_default_str();
  app.add_option("--settle", flags.settle, "Milliseconds to wait after the victim's Reply (siw needs some)")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  app.add_option("--flavour", flags.flavours,
                 "What the listener is too: prefer-off (CRC only if the peer wants it), impatient (gives up within 20 "
                 "s), revision-1 (refuses enhanced Requests), markers (asks for them)")
      ->check(CLI::IsMember({"prefer-off", "impatient", "revision-1", "markers"}));
  app.add_option("--report", flags.report, "Write the table to this file too");
  app.add_flag("--resume", flags.resume, "Go on behind the last row of --report");
  CLI11_PARSE(app, argc, argv);
  try {
    return iwarp::hostile::run(flags);
  } catch (const std::exception& error) {
    std::cerr << "hostile_peer: " << error.what() << '\n';
    return 2;
  }
}
