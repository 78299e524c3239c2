// sctp_exchange: an end of exchange.h over SCTP, for a peer on another SCTP (interop/run sctp-server, sctp-client).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

#include "iwarp/cm/completion_queue.h"
#include "iwarp/sctp_cm/service.h"
#include "tests/sctp_cm/exchange.h"

namespace iwarp::sctp_cm {
namespace {

using namespace std::chrono_literals;

struct Flags {
  std::string listen, connect, rtr;
  std::uint16_t port = 0, sctp_port = 0, ird = 32, ord = 32, streams = 64;
  std::size_t sessions = 1;
  std::uint32_t rounds = 20;
  unsigned timeout = 60;  // seconds
  bool plain = false;
};

// What a session wants: IRD and ORD, and with --rtr A=1.
sctp::SessionOptions session_options(const Flags& flags) {
  sctp::SessionOptions o;
  o.enhanced = !flags.plain;
  o.offer.depths = {flags.ird, flags.ord};
  o.offer.peer_to_peer = !flags.rtr.empty();
  if (!flags.rtr.empty()) o.offer.forms = {.send = false, .write = flags.rtr == "write", .read = flags.rtr == "read"};
  return o;
}

class Run {
 public:
  explicit Run(const Flags& flags)
      : flags_(flags), end_(std::chrono::steady_clock::now() + std::chrono::seconds(flags.timeout)) {
    auto made = Service::make(engine_);
    if (!made) throw Exchange::Failure(made.error().why);
    sctp_ = *std::move(made);
  }
  // What ends last tells the exchanges.
  ~Run() {
    ending_ = true;
    listener_.reset();
    sctp_.reset();
    exchanges_.clear();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void go() {
    flags_.listen.empty() ? connect() : listen();
    until([this] { return exchanges_.size() == flags_.sessions && all_over(); }, "not all rounds are done");
    for (const auto& x : exchanges_) tell(*x);
    // The end that has connected shuts it down.
    until([this] { return sctp_->associations() == 0; }, "the association does not end");
  }

 private:
  void listen() {
    ListenOptions options;
    options.endpoint = {boost::asio::ip::make_address(flags_.listen), flags_.port};
    options.sctp_port = flags_.sctp_port;
    options.session = session_options(flags_);
    options.transport.streams = flags_.streams;
    auto made = sctp_->listen(options);
    if (!made) throw Exchange::Failure(made.error().why);
    listener_ = *std::move(made);
    accept();
    std::cerr << "listening" << std::endl;
  }
  void accept() {
    listener_->accept([this](const Error& error, const std::unique_ptr<ConnectRequest>& request) {
      if (error) return;
      Exchange& x = add(sctp::Role::kPassive);
      request->accept(x.qp(), {flags_.ird, flags_.ord, x.hello()}, established(x));
      if (exchanges_.size() < flags_.sessions) accept();
    });
  }
  void connect() {
    for (std::size_t i = 0; i < flags_.sessions; ++i) {
      Exchange& x = add(sctp::Role::kActive);
      ConnectOptions options;
      options.host = flags_.connect;
      options.port = flags_.port;
      options.sctp_port = flags_.sctp_port;
      options.session = session_options(flags_);
      options.transport.streams = flags_.streams;
      options.share_association = flags_.sessions > 1;
      options.private_data = x.hello();
      sctp_->connect(x.qp(), options, established(x));
    }
  }
  Exchange& add(sctp::Role role) {
    exchanges_.push_back(std::make_unique<Exchange>(cq_, pd_, role, flags_.rounds));
    return *exchanges_.back();
  }
  Connection::EstablishedHandler established(Exchange& x) {
    return [this, &x](const Error& error, std::shared_ptr<Connection> connection) {
      if (ending_) return;
      if (!error) std::cerr << "established " << connection->to_string() << std::endl;
      x.on_established(error, std::move(connection));
    };
  }
  [[nodiscard]] bool all_over() const {
    return std::ranges::all_of(exchanges_, [](const auto& x) { return x->over(); });
  }
  static void tell(const Exchange& x) {
    std::cerr << "closed peer=" << x.connection()->remote() << " end=" << (x.faulty() ? "terminated" : "done")
              << " rounds=" << x.taken() << " " << x.connection()->counters().to_string() << std::endl;
  }
  void until(const std::function<bool()>& done, const char* otherwise) {
    while (!done()) {
      if (std::chrono::steady_clock::now() > end_) throw Exchange::Failure(otherwise);
      cq_.wait_for(20ms);
      std::array<verbs::Completion, 64> some;
      const std::size_t n = cq_.poll(some);
      for (std::size_t i = 0; i < n; ++i) static_cast<Exchange*>(some[i].user)->on_completion(some[i]);
      for (const auto& x : exchanges_) x->step();
    }
  }

  const Flags flags_;
  const std::chrono::steady_clock::time_point end_;
  cm::Engine engine_{cm::Engine::Mode::kManual};
  verbs::ProtectionDomain pd_{engine_.context()};
  cm::CompletionQueue cq_{engine_, 16 * Exchange::kCompletions};
  bool ending_ = false;
  std::unique_ptr<Service> sctp_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace
}  // namespace iwarp::sctp_cm

int main(int argc, char** argv) {
  iwarp::sctp_cm::Flags flags;
  CLI::App app("Rounds of RDMA Writes, Sends and RDMA Reads over SCTP in UDP, each verified by both ends");
  auto* way = app.add_option_group("way");
  way->add_option("--listen", flags.listen, "Address to listen at");
  way->add_option("--connect", flags.connect, "Host to connect to");
  way->require_option(1);
  app.add_option("-p,--port", flags.port, "Of UDP")->required();
  app.add_option("--sctp-port", flags.sctp_port, "Of SCTP (0: as --port)")->capture_default_str();
  app.add_option("--sessions", flags.sessions, "On one association")->check(CLI::Range(1, 16))->capture_default_str();
  app.add_option("--rounds", flags.rounds, "Of this end, on each session")
      ->check(CLI::Range(0, 9999))
      ->capture_default_str();
  app.add_option("--streams", flags.streams, "SCTP streams each way")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--ird", flags.ird, "Reads admitted at a time")->capture_default_str();
  app.add_option("--ord", flags.ord, "Reads outstanding at a time")->capture_default_str();
  app.add_option("--rtr", flags.rtr, "Ask for A=1, with this form")->check(CLI::IsMember({"read", "write"}));
  app.add_flag("--plain", flags.plain, "Session control of RFC 5043 only");
  app.add_option("--timeout", flags.timeout, "Seconds for all of it")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    iwarp::sctp_cm::Run(flags).go();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "sctp_exchange: " << error.what() << std::endl;
    return 1;
  }
}
