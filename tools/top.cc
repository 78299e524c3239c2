// `iwarp top`: what a gateway does, live.
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>

#include "tools/command.h"
#include "tools/json_file.h"
#include "tools/top/document.h"
#include "tools/top/fetch.h"
#include "tools/top/page.h"
#include "tools/top/screen.h"
#include "tools/top/view.h"

namespace iwarp::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFetchLimit{5};

struct Flags {
  std::string from;
  double interval_seconds = 2;
  bool once = false;
  JsonFlag json;
};

class Top {
 public:
  // `json`: null, or where the one document goes; `text`: whether the table is printed.
  Top(gateway::HostPort from, std::chrono::milliseconds interval, bool live, JsonOutput* json, bool text)
      : from_(std::move(from)), interval_(interval), live_(live), json_(json), text_(text) {}

  int run() {
    ends_.async_wait([this](boost::system::error_code ec, int) {
      if (!ec) stop(live_ ? kExitOk : kExitInterrupted);
    });
    read();
    io_.run();
    screen_.reset();
    if (!error_.empty()) std::cerr << "iwarp top: " << error_ << '\n';
    return exit_;
  }

 private:
  struct Reading {
    top::Page page;
    Clock::time_point at;
  };

  void stop(int code) {
    exit_ = code;
    io_.stop();
  }

  void read() {
    next_.expires_after(interval_);
    top::fetch(io_, from_, kFetchLimit, [this](top::Fetched fetched) { on_page(std::move(fetched)); });
  }

  void on_page(top::Fetched fetched) {
    const auto now = Clock::now();
    auto page = fetched.error.empty() ? top::parse_page(fetched.text) : std::nullopt;
    std::string trouble = fetched.error;
    if (!page && trouble.empty()) trouble = from_.to_string() + " serves no metrics of an iwarp gateway";
    if (!trouble.empty() && !screen_) {  // not even once: there is nothing to show
      error_ = std::move(trouble);
      return stop(kExitFailed);
    }
    if (page) {
      before_ = std::exchange(now_, Reading{std::move(*page), now});
      if (live_ && !screen_) take_screen();
      if (!live_ && before_) {
        tell();
        return stop(kExitOk);
      }
    }
    trouble_ = std::move(trouble);
    show();
    next_.async_wait([this](boost::system::error_code ec) {
      if (!ec) read();
    });
  }

  // Once, and not on a screen.
  void tell() const {
    if (text_) {
      for (const std::string& line : table(std::max(top::Screen::size().columns, kPlainWidth)))
        std::cout << line << '\n';
    }
    if (json_ == nullptr) return;
    nlohmann::ordered_json document = {{"gateway", from_.to_string()}};
    document.update(top::document(now_->page, before_->page, seconds_between()));
    json_->write("top", document);
  }

  void take_screen() {
    screen_.emplace();
    wait_for_size();
    // Opened anew: an event loop makes what it reads non-blocking, for the shell as well.
    const int terminal = ::open("/dev/tty", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0) return;
    keys_ = std::make_unique<boost::asio::posix::stream_descriptor>(io_, terminal);
    wait_for_key();
  }
  void wait_for_size() {
    sizes_.async_wait([this](boost::system::error_code ec, int) {
      if (ec) return;
      show();
      wait_for_size();
    });
  }
  void wait_for_key() {
    keys_->async_read_some(boost::asio::buffer(key_), [this](boost::system::error_code ec, std::size_t) {
      if (ec) return;  // Ctrl-C remains
      if (key_[0] == 'q') return stop(kExitOk);
      wait_for_key();
    });
  }

  [[nodiscard]] std::vector<std::string> table(std::size_t width) const {
    return top::table(now_->page, before_->page, seconds_between(), width);
  }
  [[nodiscard]] double seconds_between() const { return std::chrono::duration<double>(now_->at - before_->at).count(); }

  void show() {
    if (!screen_) return;
    const std::size_t width = top::Screen::size().columns;
    std::vector<std::string> lines = {fmt::format("iwarp top {}  every {:g} s  q ends", from_.to_string(),
                                                  std::chrono::duration<double>(interval_).count())};
    for (std::size_t at = 0; at < trouble_.size(); at += width) lines.push_back(trouble_.substr(at, width));
    if (before_) {
      for (std::string& line : table(width)) lines.push_back(std::move(line));
    } else {
      lines.push_back("reading ...");
    }
    for (std::string& line : lines) {
      if (line.size() > width) line.resize(width);
    }
    screen_->draw(lines);
  }

  static constexpr std::size_t kPlainWidth = 100;

  const gateway::HostPort from_;
  const std::chrono::milliseconds interval_;
  const bool live_;
  JsonOutput* const json_;
  const bool text_;
  boost::asio::io_context io_{1};
  boost::asio::signal_set ends_{io_, SIGINT, SIGTERM, SIGHUP};
  boost::asio::signal_set sizes_{io_, SIGWINCH};
  boost::asio::steady_timer next_{io_};
  std::unique_ptr<boost::asio::posix::stream_descriptor> keys_;
  std::array<char, 1> key_{};
  std::optional<Reading> now_, before_;
  std::optional<top::Screen> screen_;
  std::string trouble_;  // of the last reading
  std::string error_;
  int exit_ = kExitOk;
};

int run(const Flags& flags) {
  const auto from =
      gateway::HostPort::parse(flags.from.find(':') == std::string::npos ? "127.0.0.1:" + flags.from : flags.from);
  if (!from) throw CLI::ValidationError("GATEWAY", from.error);
  const auto interval = std::chrono::milliseconds(static_cast<long>(flags.interval_seconds * 1000));
  std::optional<JsonOutput> json;
  if (flags.json.given()) json.emplace(flags.json);
  const bool live = !flags.once && !json && ::isatty(STDOUT_FILENO) == 1;
  return Top(*from.value, interval, live, json ? &*json : nullptr, !flags.json.on_standard_output()).run();
}

}  // namespace

Run add_top(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd = app.add_subcommand("top", "Watch what a gateway does, by listener and RPC program");
  cmd->add_option("GATEWAY", flags->from, "HOST:PORT of iwarp gateway --metrics; a PORT alone is that of 127.0.0.1")
      ->required();
  cmd->add_option("--interval", flags->interval_seconds, "Time between two readings")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  cmd->add_flag("--once", flags->once,
                "Read twice, print one table and end; so it is when standard output is no terminal");
  flags->json.add(*cmd, "Read twice, print the table as JSON (docs/JSON.md) and end");
  cmd->footer(
      "Columns: requests (Calls) and answers (Replies) in a second, requests under way, the time that half and 99 of "
      "100 answers took (from the request at the gateway; near, not exact), octets of both in a second, requests that "
      "failed since the start. RDMA B/s: payload octets in a second, received and sent.\n"
      "Keys: q or Ctrl-C ends. docs/GATEWAY-METRICS.md explains the metrics.\n"
      "Examples:\n"
      "  iwarp gateway --rdma-listen [::]:20049 --tcp 127.0.0.1:2049 --metrics 9100 &\n"
      "  iwarp top 9100\n"
      "  iwarp top --once --interval 10 10.0.0.1:9100\n"
      "  iwarp top 9100 --json | jq '.listeners[].connections'\n"
      "Exit code: 0 ended by q or Ctrl-C, or the table was printed, 1 the gateway cannot be read, 2 wrong usage, 130 "
      "interrupted before the table of --once.");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
