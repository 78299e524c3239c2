// soak CONNECTIONS MESSAGES [THREADS [SEED [tcp|sctp]]]
//
// Two engines in one process, and threads that connect, post from everywhere at once, poll, wait and end connections at
// random, until so many connections have come and gone and so many messages were completed. In ten rounds: after each
// one everything is closed, and memory, descriptors and threads must be what they were after the first rounds. Exit
// status 1 when they are not, or when a work request completes twice, never or wrongly (session.h). Over SCTP
// connections share associations.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unordered_map>

#include "iwarp/base/wire.h"
#include "tests/soak/session.h"
#include "tests/soak/vitals.h"
#include "tools/layer_handle.h"

namespace iwarp::soak {
namespace {

constexpr int kRounds = 10;
constexpr int kSettled = 3;        // the round that the later ones are compared with
constexpr std::size_t kSlots = 8;  // connections at a time
// Beyond this a heap grows. A tenth of what the sessions of one round would leave if each kept one completion queue.
constexpr std::size_t kAllowedHeap = 256 * 1024;
// Each round has associations of its own, and some 20 KiB of each end stay with usrsctp for a while.
constexpr std::size_t kAllowedHeapWithSctp = 1024 * 1024;
// Pages that malloc holds for other reasons come and go.
constexpr std::size_t kAllowedResident = 8 * 1024 * 1024;

struct Plan {
  std::uint64_t connections = 0, messages = 0;
  unsigned threads = 4, seed = 1;
  llp::Kind llp = llp::Kind::kTcp;
};

class Soak {
 public:
  explicit Soak(const Plan& plan) : plan_(plan) {
    at_server_ = lower_layer(server_engine_);
    if (plan.llp == llp::Kind::kTcp) at_client_ = lower_layer(client_engine_);
    cm::ListenOptions o;
    o.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
    auto made = at_server_->listen(o);
    if (!made) give_up("cannot listen:", made.error().why);
    listener_ = std::move(made).value();
    accept_next();
  }

  void run() {
    fill_quarantine();
    std::printf("%-6s %12s %12s %12s %10s %10s %6s %8s\n", "round", "connections", "messages", "flushed", "RSS KiB",
                "heap KiB", "files", "threads");
    Vitals settled;
    for (int round = 1; round <= kRounds; ++round) {
      run_round(round);
      const Vitals v = vitals_at_rest();
      std::printf("%-6d %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %10zu %10zu %6zu %8zu\n", round,
                  totals_.sessions.load(), totals_.messages.load(), totals_.flushed.load(), v.resident_bytes / 1024,
                  v.allocated_bytes / 1024, v.descriptors, v.threads);
      std::fflush(stdout);
      if (round == kSettled) settled = v;
      if (round > kSettled) compare(settled, v);
    }
    const std::string counts =
        std::to_string(totals_.established.load()) + " ends of " + std::to_string(totals_.sessions.load());
    if (totals_.established.load() < totals_.sessions.load())
      give_up("most sessions never got a connection:", counts.c_str());
  }

 private:
  tools::LayerHandle lower_layer(cm::Engine& engine) const {
    auto made = llp::LowerLayer::make(engine, plan_.llp, {.packet_bytes = 8000, .share_association = true});
    if (!made) give_up("no lower layer:", made.error().why);
    return tools::LayerHandle(made->release());
  }
  // A process has SCTP once.
  [[nodiscard]] llp::LowerLayer& of_client() const { return at_client_ ? *at_client_ : *at_server_; }

  // Freed STags rest, so that the first connections make the table grow: let it have its full size from the beginning.
  void fill_quarantine() {
    std::vector<std::byte> memory(64);
    for (Source* source : {&client_source_, &server_source_}) {
      for (int i = 0; i < 70'000; ++i) {
        if (!verbs::MemoryRegion::register_memory(source->pd, memory, {})) give_up("memory was not registered");
      }
    }
  }

  void accept_next() {
    listener_->accept([this](const Error& error, std::unique_ptr<llp::ConnectRequest> request) {
      if (error.code != Errc::kOk) return;  // the listener is closed
      if (const auto session = find(load_be<std::uint64_t>(request->private_data()))) {
        session->accept(*request);
      } else {
        (void)request->reject();
      }
      accept_next();
    });
  }

  std::shared_ptr<Session> find(std::uint64_t id) {
    const std::lock_guard lock(mu_);
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second.lock();
  }

  void run_round(int round) {
    connections_goal_ = plan_.connections * static_cast<std::uint64_t>(round) / kRounds;
    messages_goal_ = plan_.messages * static_cast<std::uint64_t>(round) / kRounds;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < plan_.threads; ++t) {
      threads.emplace_back([this, seed = plan_.seed * 1000 + static_cast<unsigned>(round) * 100 + t] { work(seed); });
    }
    for (std::thread& t : threads) t.join();
    std::mt19937 random(plan_.seed);
    for (auto& slot : slots_) {
      if (const auto session = std::exchange(slot, nullptr)) session->end(random);
    }
    for (int i = 0; totals_.alive.load() != 0; ++i) {
      if (i == 60'000) give_up("connections do not come to an end");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!of_client().wait_closed(std::chrono::seconds(60))) give_up("associations do not come to an end");
    const std::lock_guard lock(mu_);
    by_id_.clear();
  }

  [[nodiscard]] bool round_done() const {
    return totals_.sessions.load() >= connections_goal_ && totals_.messages.load() >= messages_goal_;
  }

  // Whether more connections have ended than messages justify, so that both goals are reached together.
  [[nodiscard]] bool enough_ended() const {
    return totals_.sessions.load() * plan_.messages > totals_.messages.load() * plan_.connections;
  }

  void work(unsigned seed) {
    std::mt19937 random(seed);
    while (!round_done()) {
      const std::size_t slot = random() % kSlots;
      const std::shared_ptr<Session> session = in_slot(slot);
      End& end = random() % 2 == 0 ? session->client : session->server;
      for (std::uint32_t i = random() % 16; i > 0 && end.post(random); --i) {
      }
      while (session->client.poll() + session->server.poll() > 0) {
      }
      if (random() % 16 == 0) (void)end.cq().wait_for(std::chrono::microseconds(random() % 500));
      const bool chosen = random() % 8 == 0 && !enough_ended() && session->may_end();
      if (chosen || session->client.used_up() || session->server.used_up()) {
        replace(slot, session);
        session->end(random);
      }
    }
  }

  // The session of a slot; a new one if there is none.
  std::shared_ptr<Session> in_slot(std::size_t slot) {
    const std::lock_guard lock(mu_);
    if (slots_[slot] != nullptr) return slots_[slot];
    auto session = std::make_shared<Session>(client_engine_, client_source_, server_engine_, server_source_, totals_);
    const std::uint64_t id = next_session_++;
    by_id_[id] = session;
    if (by_id_.size() > 1000) std::erase_if(by_id_, [](const auto& entry) { return entry.second.expired(); });
    slots_[slot] = session;
    session->connect(of_client(), listener_->local().port(), id);
    return session;
  }

  void replace(std::size_t slot, const std::shared_ptr<Session>& session) {
    const std::lock_guard lock(mu_);
    if (slots_[slot] == session) slots_[slot].reset();
  }

  // The listener may still be reading from sockets whose client has gone: until nothing changes any more.
  static Vitals vitals_at_rest() {
    Vitals v = Vitals::now();
    for (int calm = 0, i = 0; calm < 50 && i < 10'000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const Vitals next = Vitals::now();
      calm = next.descriptors == v.descriptors ? calm + 1 : 0;
      v = next;
    }
    return v;
  }

  void compare(const Vitals& before, const Vitals& now) const {
    if (now.descriptors != before.descriptors) give_up("descriptors are not what they were");
    if (now.threads != before.threads) give_up("threads are not what they were");
    if (!memory_is_measurable()) return;
    const std::size_t allowed = plan_.llp == llp::Kind::kSctp ? kAllowedHeapWithSctp : kAllowedHeap;
    if (now.allocated_bytes > before.allocated_bytes + allowed) give_up("the heap grows");
    if (now.resident_bytes > before.resident_bytes + kAllowedResident) give_up("resident memory grows");
  }

  const Plan plan_;
  Totals totals_;
  std::uint64_t connections_goal_ = 0, messages_goal_ = 0;
  cm::Engine server_engine_, client_engine_;
  Source server_source_{server_engine_}, client_source_{client_engine_};
  std::mutex mu_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Session>> by_id_;
  std::uint64_t next_session_ = 1;
  std::array<std::shared_ptr<Session>, kSlots> slots_;
  tools::LayerHandle at_server_, at_client_;  // null: that of the server is the client's, too
  std::unique_ptr<llp::Listener> listener_;
};

}  // namespace
}  // namespace iwarp::soak

int main(int argc, char** argv) {
  if (argc < 3 || argc > 6) {
    std::fprintf(stderr, "usage: soak CONNECTIONS MESSAGES [THREADS [SEED [tcp|sctp]]]\n");
    return 2;
  }
  iwarp::soak::Plan plan;
  plan.connections = std::strtoull(argv[1], nullptr, 10);
  plan.messages = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) plan.threads = std::max(1U, static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
  if (argc > 4) plan.seed = static_cast<unsigned>(std::strtoul(argv[4], nullptr, 10));
  if (argc > 5) {
    const auto llp = iwarp::llp::kind_named(argv[5]);
    if (!llp) {
      std::fprintf(stderr, "soak: '%s' is neither tcp nor sctp\n", argv[5]);
      return 2;
    }
    plan.llp = *llp;
  }
  if (plan.llp == iwarp::llp::Kind::kSctp && !iwarp::llp::has(iwarp::llp::Kind::kSctp)) {
    std::printf("soak: built without SCTP\n");
    return 77;
  }
  iwarp::soak::Soak(plan).run();
  return 0;
}
