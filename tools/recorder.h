// --trace and --pcap: what the connections of a command did, as lines (docs/TRACE.md) and as a capture that Wireshark
// opens. Files are written as things happen, so that they are complete when a command is killed; that costs speed.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "iwarp/cm/engine.h"

namespace iwarp::tools {

class RecorderFlags {
 public:
  void add(CLI::App& app);
  // After parsing, before the first listen or connect. Does nothing when no flag was given. Throws std::runtime_error
  // when a file cannot be made.
  void apply(cm::Engine& engine) const;
  // The same for a command that drives its sockets itself. Empty when no flag was given.
  [[nodiscard]] cm::TapMaker tap_maker() const;

  // Whether any was given.
  [[nodiscard]] bool given() const { return !trace_.empty() || !pcap_.empty(); }

  friend bool operator==(const RecorderFlags&, const RecorderFlags&) = default;

 private:
  std::string trace_, pcap_;
  bool verbose_ = false;
};

}  // namespace iwarp::tools
