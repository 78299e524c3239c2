// How a log line on standard error looks.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>

namespace iwarp::tools {

// Whether standard error is the journal's stream: $JOURNAL_STREAM names its device and inode (systemd.exec(5)).
[[nodiscard]] bool goes_to_journal();
// Time, level, text; for the journal, which knows the time, "<4>text" (sd-daemon(3)). With a command, such as "iwarp
// perf run", an error is "iwarp perf run: text", as what ends a command is told; without one, as of a daemon that goes
// on, it has time and level, too.
[[nodiscard]] std::unique_ptr<spdlog::formatter> log_formatter(const std::string& command,
                                                               bool for_journal = goes_to_journal());

}  // namespace iwarp::tools
