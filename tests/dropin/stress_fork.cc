// `dropin_stress fork`: children that only execute another program, and children that use the device themselves, while
// the connections of their parent go on.
#include "tests/dropin/stress_support.h"
//
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/sanitized.h"

extern char** environ;

namespace iwarp::stress {
namespace {

constexpr std::uint32_t kOctets = 1000;
constexpr int kBacklog = 64, kEchoes = 20;

// What either end has: a queue pair with room for one message each way.
struct Talker {
  explicit Talker(rdma_cm_id* of) : id(of) {
    cq = ::ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
    DEMAND(cq != nullptr);
    mr = ::ibv_reg_mr(id->pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
    DEMAND(mr != nullptr);
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_RC;
    wanted.sq_sig_all = 1;
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    DEMAND(::rdma_create_qp(id, nullptr, &wanted) == 0);
    receive();
  }
  ~Talker() {
    ::rdma_destroy_qp(id);
    DEMAND(::rdma_destroy_id(id) == 0);
    DEMAND(::ibv_dereg_mr(mr) == 0);
    DEMAND(::ibv_destroy_cq(cq) == 0);
  }
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;

  [[nodiscard]] std::span<std::byte> out() { return std::span(memory).first(kOctets); }
  [[nodiscard]] std::span<std::byte> in() { return std::span(memory).subspan(kOctets); }
  void receive() { DEMAND(post_receive(id->qp, 1, in(), mr->lkey) == 0); }
  void send() { DEMAND(post_send(id->qp, 0, IBV_WR_SEND, out(), mr->lkey) == 0); }
  // Whether a message has come. `may_end`: it may as well be over.
  bool look(bool may_end) {
    ibv_wc wc{};
    bool arrived = false;
    while (::ibv_poll_cq(cq, 1, &wc) == 1) {
      DEMAND_OR_SAY(wc.status == IBV_WC_SUCCESS || may_end, ::ibv_wc_status_str(wc.status));
      arrived |= wc.status == IBV_WC_SUCCESS && wc.wr_id == 1;
    }
    return arrived;
  }

  rdma_cm_id* id;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  std::array<std::byte, std::size_t{2} * kOctets> memory{};
};

// Answers whoever connects with what it has sent.
class EchoServer {
 public:
  EchoServer() {
    DEMAND(channel_ != nullptr);
    listener_ = make_listener(channel_, kBacklog);
    port = ntohs(::rdma_get_src_port(listener_));
    thread_ = std::thread([this] { run(); });
  }
  ~EchoServer() {
    stopped_ = true;
    thread_.join();
    talkers_.clear();
    DEMAND(::rdma_destroy_id(listener_) == 0);
    ::rdma_destroy_event_channel(channel_);
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  std::uint16_t port = 0;
  [[nodiscard]] rdma_event_channel* channel() const { return channel_; }
  [[nodiscard]] rdma_cm_id* listener() const { return listener_; }

 private:
  void run() {
    const Doing doing("echoes");
    while (!stopped_) {
      if (rdma_cm_event* const event = next_event(channel_, std::chrono::milliseconds(1))) on_event(event);
      for (auto& [id, talker] : talkers_) {
        if (!talker.look(true)) continue;
        std::memcpy(talker.out().data(), talker.in().data(), kOctets);
        talker.receive();
        talker.send();
        Doing::now("echoes");
      }
    }
  }
  void on_event(rdma_cm_event* event) {
    rdma_cm_id* const id = event->id;
    const auto type = event->event;
    DEMAND(::rdma_ack_cm_event(event) == 0);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      talkers_.try_emplace(id, id);
      rdma_conn_param wanted{};
      DEMAND(::rdma_accept(id, &wanted) == 0);
    } else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR) {
      talkers_.erase(id);
    }
  }

  rdma_event_channel* channel_ = ::rdma_create_event_channel();
  rdma_cm_id* listener_ = nullptr;
  std::map<rdma_cm_id*, Talker> talkers_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

// A connection of a synchronous id.
class EchoClient {
 public:
  explicit EchoClient(std::uint16_t port) {
    rdma_cm_id* id = nullptr;
    DEMAND(::rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0);
    sockaddr_in peer = loopback(port);
    DEMAND(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 2000) == 0);
    DEMAND(::rdma_resolve_route(id, 2000) == 0);
    talker_.emplace(id);
    rdma_conn_param wanted{};
    DEMAND(::rdma_connect(id, &wanted) == 0);
  }
  // One message there and back.
  void echo(unsigned number) {
    fill(talker_->out(), number);
    talker_->send();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!talker_->look(false)) DEMAND(std::chrono::steady_clock::now() < until);
    DEMAND(is_from(talker_->in(), number));
    talker_->receive();
  }
  void disconnect() { DEMAND(::rdma_disconnect(talker_->id) == 0); }
  [[nodiscard]] rdma_cm_id* id() const { return talker_->id; }
  [[nodiscard]] ibv_cq* cq() const { return talker_->cq; }

 private:
  std::optional<Talker> talker_;
};

void talk(std::uint16_t port, unsigned number) {
  EchoClient client(port);
  for (int i = 0; i < kEchoes; ++i) client.echo(number + static_cast<unsigned>(i));
  client.disconnect();
}

// What the parent has made is dead here, and does nothing; new things work.
[[noreturn]] void child_that_uses_the_device(const EchoServer& server, const EchoClient& client, unsigned number) {
  const Doing doing("is a child");
  ibv_wc wc{};
  DEMAND(::ibv_poll_cq(client.cq(), 1, &wc) == 0);
  DEMAND(::ibv_destroy_qp(client.id()->qp) == 0);
  DEMAND(::rdma_destroy_id(client.id()) == 0);
  DEMAND(::ibv_destroy_cq(client.cq()) == 0);
  ::rdma_destroy_event_channel(server.channel());
  for (unsigned i = 0; i < 3; ++i) talk(server.port, number + 100 * i);
  std::_Exit(0);
}

pid_t child_that_executes(const char* program, std::uint16_t port, bool spawned) {
  const std::string text = std::to_string(port);
  const std::array<char*, 4> words = {const_cast<char*>(program), const_cast<char*>("fork-child"),
                                      const_cast<char*>(text.c_str()), nullptr};
  pid_t child = 0;
  if (spawned) {
    DEMAND(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words.data(), environ) == 0);
    return child;
  }
  child = ::fork();
  if (child != 0) return child;
  ::execv("/proc/self/exe", words.data());
  ::_exit(127);
}

void wait_for(pid_t child) {
  Doing::now("waits for a child");
  DEMAND(child > 0);
  int status = 0;
  DEMAND(::waitpid(child, &status, 0) == child);
  DEMAND_OR_SAY(status == 0, "status " + std::to_string(status));
}

}  // namespace

void exec_child(std::uint16_t port) {
  // Nothing of the parent's device has come along.
  const std::size_t inherited = descriptors();
  for (int i = 3; i < 64; ++i) {
    std::array<char, 256> target{};
    const std::string name = "/proc/self/fd/" + std::to_string(i);
    if (::readlink(name.c_str(), target.data(), target.size() - 1) <= 0) continue;
    const std::string_view text(target.data());
    DEMAND_OR_SAY(!text.starts_with("socket:") && !text.starts_with("anon_inode:"), std::string(text));
  }
  DEMAND(inherited < 64);
  talk(port, 7);
}

void forks(const Settings& settings) {
  const Doing doing("begins");
  // What this process has from who started it is not to look like a leak.
  for (int i = 3; i < 64; ++i) (void)::fcntl(i, F_SETFD, FD_CLOEXEC);
  EchoServer server;
  EchoClient client(server.port);
  std::atomic<bool> stopped{false};
  std::atomic<unsigned> echoes{0};
  std::thread meanwhile([&] {
    const Doing talks("talks meanwhile");
    while (!stopped) {
      client.echo(++echoes);
      Doing::now("talks meanwhile");
    }
    client.disconnect();
  });
  for (unsigned i = 0; i < settings.count; ++i) {
    Doing::number(i);
    const unsigned before = echoes;
    std::vector<pid_t> children = {child_that_executes(settings.program, server.port, false),
                                   child_that_executes(settings.program, server.port, true)};
    // libsanitizer's allocator does not give back at fork() what another thread has locked.
    if (!iwarp::test::kSanitized) {
      const pid_t child = ::fork();
      if (child == 0) child_that_uses_the_device(server, client, 1000 + i);
      children.push_back(child);
    }
    for (const pid_t child : children) wait_for(child);
    while (echoes < before + 10) pause_us(1000);
  }
  stopped = true;
  meanwhile.join();
  std::printf("%u times children, %u echoes meanwhile\n", settings.count, echoes.load());
}

}  // namespace iwarp::stress
