// Two hosts in memory: queue pairs, completion queues, memory and the TCP connections between them, driven as
// docs/DRIVING.md says. No socket, no thread, no clock: it is told how many octets move and how much time passes.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "iwarp/stream/connection.h"
#include "iwarp/verbs/memory_region.h"
#include "iwarp/verbs/queue_pair.h"
#include "tests/programs/program.h"
#include "tests/support/hex.h"

namespace iwarp::programs {

using test::Bytes;

// One direction of a TCP connection.
struct Wire {
  enum class End : std::uint8_t { kNone, kFin, kReset };

  Bytes octets;
  std::size_t taken = 0;  // of them, by the receiver
  End end = End::kNone;   // behind them
  bool end_taken = false;

  [[nodiscard]] std::size_t waiting() const { return octets.size() - taken; }
  void clear() {
    octets.clear();
    taken = 0;
  }
};

// Counts what it is told.
struct CountingNotifier final : verbs::Notifier {
  void notify(verbs::CompletionQueue&) noexcept override { ++told; }
  std::size_t told = 0;
};

class Hosts {
 public:
  static constexpr std::size_t kAll = ~std::size_t{0};

  explicit Hosts(const Setup& setup);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  // --- Objects.
  [[nodiscard]] verbs::QueuePair& qp(std::size_t i) { return *ends_[i]->qp; }
  [[nodiscard]] std::size_t qps() const { return ends_.size(); }
  // The queue of sends, or of receives, of a host.
  [[nodiscard]] verbs::CompletionQueue& cq(std::size_t host, bool receives);
  [[nodiscard]] CountingNotifier& notifier(std::size_t host, bool receives);
  [[nodiscard]] verbs::SharedReceiveQueue* srq(std::size_t host) { return hosts_[host].srq.get(); }
  [[nodiscard]] verbs::Context& context(std::size_t host) { return *hosts_[host].context; }
  [[nodiscard]] Bytes& memory(std::size_t qp, std::size_t region) { return ends_[qp]->memory[region]; }
  [[nodiscard]] verbs::MemoryRegion& region(std::size_t qp, std::size_t index) { return ends_[qp]->regions[index]; }
  // The queue pair with that number; nullopt: there is none.
  [[nodiscard]] std::optional<std::size_t> numbered(std::uint32_t number) const;
  // Registers a region anew, as it was; `key` 256: any.
  [[nodiscard]] Result<void> reregister(std::size_t qp, std::size_t index, std::uint32_t key);

  // --- The network.
  // The Request of the pair of `qp` arrives and is accepted.
  void connect(std::size_t qp);
  // At most `octets` go from the queue pair to TCP. Whether any did.
  bool take(std::size_t qp, std::size_t octets);
  // TCP delivers at most `octets` to the queue pair, in reads of at most `cut`, of random length from `seed`; 0: what
  // there is. Behind the last of them the end of the stream, if there is one. Whether anything came.
  bool deliver(std::size_t qp, std::size_t octets, std::uint32_t cut, std::uint32_t seed);
  // TCP ends, at both ends.
  void lose(std::size_t qp, std::uint32_t how);
  void set_emss(std::size_t qp, std::uint32_t emss);

  // --- Time.
  void pass(std::chrono::milliseconds time);
  // When the core of a queue pair wants to be called; nullopt: never.
  [[nodiscard]] std::optional<TimePoint> deadline(std::size_t qp);
  void pass_to(TimePoint time);

  // --- Ends.
  void disconnect(std::size_t qp);
  void leave(std::size_t qp);
  // `how` is Step::more.
  void abort(std::size_t qp, std::uint32_t how);

  // What the connection of `qp` has told since the last call.
  [[nodiscard]] std::vector<stream::Event> events(std::size_t qp);
  // Whether TCP was let go at this end.
  [[nodiscard]] bool released(std::size_t qp) const { return ends_[qp]->released; }
  [[nodiscard]] bool consistent(std::size_t qp);
  // Deregisters all memory. Whether no registration is left.
  [[nodiscard]] bool deregister();
  // Whether anybody wanted to send behind its FIN.
  [[nodiscard]] bool sent_behind_fin() const { return after_fin_; }

 private:
  struct Host {
    std::shared_ptr<verbs::Context> context = std::make_shared<verbs::Context>();
    verbs::ProtectionDomain pd{context};
    std::array<std::unique_ptr<verbs::CompletionQueue>, 2> cqs;
    std::array<CountingNotifier, 2> notifiers;
    std::unique_ptr<verbs::SharedReceiveQueue> srq;
  };
  struct End final : verbs::Driver {
    void kick() override;
    [[nodiscard]] std::optional<Agreed> agreed() const override {
      const mpa::Negotiated& n = core->negotiated();
      return Agreed{n.ird, n.ord, core->mulpdu(), n.crc, n.markers_sent, n.markers_received};
    }

    Hosts* hosts = nullptr;
    std::size_t number = 0;
    bool connected = false, eager = false;
    std::shared_ptr<verbs::QueuePair> qp;
    std::optional<stream::Connection> core;
    std::array<Bytes, kRegions> memory;
    std::array<verbs::MemoryRegion, kRegions> regions;
    Wire out;
    bool released = false;
    std::vector<stream::Event> events;
    Bytes scratch;
  };

  void set_driver(End& end, verbs::Driver* driver);
  void make_host(std::size_t host);
  void make_end(std::size_t number);
  void make_region(End& end, std::size_t index);
  [[nodiscard]] verbs::MemoryRegion::Options options_of(const End& end, std::size_t index) const;
  [[nodiscard]] mpa::Policy policy(std::size_t host) const;
  [[nodiscard]] bool transmit(End& end, std::size_t octets);
  [[nodiscard]] std::size_t read(End& to, Wire& from, std::size_t most);
  void after(End& end);
  void expire(End& end);
  void act_on_link(End& end);
  void tcp_ends(End& end, stream::TcpEnd how);

  Setup setup_;
  bool after_fin_ = false;
  TimePoint now_{std::chrono::seconds(1)};
  std::array<Host, kHosts> hosts_;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace iwarp::programs
