#include "tests/faults/chain.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "iwarp/base/wire.h"
#include "tests/faults/process_facts.h"
#include "tests/gateway/rpc_server.h"

namespace iwarp::faults {
namespace {

std::string fresh_file() {
  static std::atomic<int> n{0};
  return ::testing::TempDir() + "iwarp-faults-" + std::to_string(::getpid()) + "-" + std::to_string(++n);
}

std::string loopback(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

}  // namespace

Chain::Chain(std::vector<std::string> more) : more_(std::move(more)), file_(fresh_file()) {
  for (const Process p : {kStore, kRdmaFront, kTcpFront}) start(p);
}

Chain::~Chain() {
  std::error_code ec;
  std::filesystem::remove(file_, ec);
}

std::vector<std::string> Chain::arguments(Process which) const {
  std::vector<std::string> words;
  switch (which) {
    case kStore:
      return {std::to_string(port(kStore)), file_};
    case kRdmaFront:
      words = {"gateway", "--rdma-listen", loopback(port(kRdmaFront)), "--tcp", loopback(port(kStore))};
      break;
    case kTcpFront:
      words = {"gateway", "--tcp-listen",          loopback(port(kTcpFront)),
               "--rdma",  loopback(relay_.port()), "--insecure-ports"};
      break;
  }
  words.insert(words.end(), more_.begin(), more_.end());
  return words;
}

void Chain::start(Process which) {
  auto& process = processes_[which];
  process = which == kStore ? std::make_unique<test::Subprocess>(IWARP_FAULTS_STORE, arguments(which))
                            : std::make_unique<test::Subprocess>(arguments(which));
  EXPECT_EQ(process->listening_port(), std::to_string(port(which)));
  if (which == kRdmaFront) relay_.set_target(port(which));
  descriptors_at_start_[which] = descriptors_at_rest(process->pid());
}

void Chain::kill(Process which) {
  processes_[which]->signal(SIGKILL);
  EXPECT_EQ(processes_[which]->wait(), 128 + SIGKILL);
}

nlohmann::json Chain::counters(Process which) {
  test::Subprocess& process = *processes_[which];
  constexpr const char* kLast = "}}\n";  // of the one line that they are
  const std::size_t printed = process.count(kLast);
  process.signal(SIGUSR1);
  if (!process.wait_for(kLast, printed + 1)) throw std::runtime_error("no counters: " + process.output());
  const std::string& text = process.output();
  const std::size_t end = text.rfind(kLast) + 2, begin = text.rfind("{\"iwarp\"", end);
  return nlohmann::json::parse(text.substr(begin, end - begin));
}

bool Chain::at_rest(Process which) {
  if (descriptors(processes_[which]->pid()) != descriptors_at_start_[which]) return false;
  return which == kStore || counters(which)["connections"]["active"] == 0;
}

void Chain::read_logs() {
  for (const auto& p : processes_) p->read_pending();
}

std::vector<std::string> Chain::applied() const {
  std::ifstream in(file_);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool RpcClient::send(const test::Bytes& record) {
  using test::operator+;
  return tcp_.send(gateway::test::record_mark(record.size()) + record);  // at once, or TCP waits for acknowledgements
}

std::optional<test::Bytes> RpcClient::receive(int limit_ms) {
  const test::Bytes mark = tcp_.read(4, limit_ms);
  if (mark.size() < 4) return std::nullopt;
  const std::size_t size = load_be<std::uint32_t>(mark) & 0x7FFFFFFFU;
  test::Bytes record = tcp_.read(size, limit_ms);
  if (record.size() < size) return std::nullopt;
  return record;
}

bool RpcClient::answered(const test::Bytes& call, int limit_ms) {
  return send(call) && receive(limit_ms) == gateway::test::serve(call);
}

}  // namespace iwarp::faults
