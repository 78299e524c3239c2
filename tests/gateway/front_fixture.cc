#include "tests/gateway/front_fixture.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <sstream>

namespace iwarp::gateway::test {
namespace {

// As it was before the first test.
const std::shared_ptr<spdlog::logger>& logger_of_the_process() {
  static const auto logger = spdlog::default_logger();
  return logger;
}

}  // namespace

FrontFixture::FrontFixture() {
  (void)logger_of_the_process();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("gateway", log.sink()));
}

FrontFixture::~FrontFixture() {
  server.shut_down();  // its handlers may name what the test has destroyed
  front.reset();
  loop.run_for(std::chrono::milliseconds(1));
  if (HasFailure()) std::cerr << "--- log of the gateway\n" << log.str() << "---\n";
  spdlog::set_default_logger(logger_of_the_process());
}

std::shared_ptr<Process> FrontFixture::process_for(cm::Engine& engine) {
  ProcessOptions of_process = ProcessOptions::of_one(options);
  if (const char* workers = std::getenv("IWARP_TEST_WORKERS"); workers != nullptr)
    of_process.workers = std::strtoul(workers, nullptr, 10);
  auto process = std::make_shared<Process>(engine, of_process);
  process->start_workers();
  for (int i = 0; i < 1000 && process->workers().size() > 1; ++i) seats.push_back(process->home().take_seat());
  process_of_front = process;
  return process;
}

void FrontFixture::open() {
  open(server.host_port());
}

void FrontFixture::open(const HostPort& backend, const std::string& address) {
  auto opened = RdmaFront::open(gateway_engine, {boost::asio::ip::make_address(address), 0}, backend, options,
                                process_for(gateway_engine));
  ASSERT_TRUE(opened.ok()) << opened.error().why;
  front = std::move(*opened);
}

std::unique_ptr<RdmaClient> FrontFixture::client(RdmaClient::Options with) {
  auto out = std::make_unique<RdmaClient>(loop, client_engine, std::move(with));
  const bool connected = out->connect(front->local());
  EXPECT_TRUE(connected) << (out->decided() ? out->error().why : "no decision");
  return out;
}

void FrontFixture::settle() {
  bool settled = false;
  process_of_front.lock()->when_all_have_looked([&] { settled = true; });
  ASSERT_TRUE(loop.until([&] { return settled; }));
}

void FrontFixture::expect_still_serving() {
  auto good = client();
  good->call(samples::null_call(0x600D));
  EXPECT_EQ(good->await(0x600D).payload, samples::rpc_reply(0x600D));
}

void FrontFixture::expect_nothing_pending() const {
  const auto s = front->snapshot();
  for (std::size_t kind = 0; kind < kMessageKinds; ++kind) {
    const Stats::Messages& m = s.messages[kind];
    EXPECT_EQ(m.received, m.forwarded + m.dropped_total()) << name(static_cast<MessageKind>(kind));
  }
}

std::size_t FrontFixture::log_lines(const std::string& text) const {
  std::istringstream lines(log.str());
  std::size_t n = 0;
  for (std::string line; std::getline(lines, line);) n += line.find(text) != std::string::npos ? 1 : 0;
  return n;
}

testing::AssertionResult FrontFixture::logged_at_least(const std::string& text, std::size_t lines) {
  if (loop.until([&] { return log_lines(text) >= lines; })) return testing::AssertionSuccess();
  return testing::AssertionFailure() << log_lines(text) << " lines with '" << text << "', not " << lines;
}

testing::AssertionResult FrontFixture::logged(const std::string& text, std::size_t lines) {
  if (auto enough = logged_at_least(text, lines); !enough) return enough;
  if (log_lines(text) == lines) return testing::AssertionSuccess();
  return testing::AssertionFailure() << log_lines(text) << " lines with '" << text << "', not " << lines;
}

}  // namespace iwarp::gateway::test
