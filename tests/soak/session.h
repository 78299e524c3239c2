// One connection of the soak test, both ends of it in this process, used by any number of threads at once: they post,
// poll, and end it in the middle of everything. It checks that every work request completes exactly once and that what
// arrives is what was sent.
#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "iwarp/llp/lower_layer.h"
#include "iwarp/verbs/memory_region.h"

namespace iwarp::soak {

// Prints what went wrong and ends the process with status 1.
[[noreturn]] void give_up(const char* what, const char* detail = "");

struct Totals {
  std::atomic<std::uint64_t> messages{0};  // Sends, Writes and Reads completed without error
  std::atomic<std::uint64_t> flushed{0};   // work requests that the end of their connection overtook
  std::atomic<std::uint64_t> sessions{0};  // ended
  std::atomic<std::uint64_t> established{0};
  std::atomic<std::int64_t> alive{0};  // sessions not destroyed yet
};

// Memory that all sessions of one engine send from: a pattern.
class Source {
 public:
  static constexpr std::size_t kBytes = 4096;
  explicit Source(cm::Engine& engine);

  verbs::ProtectionDomain pd;
  std::vector<std::byte> bytes;
  verbs::MemoryRegion region;
};

// One end: a queue pair with completion queue and memory of its own.
class End {
 public:
  static constexpr std::size_t kSends = 64, kReceives = 32;
  static constexpr std::size_t kMessageBytes = 1024;
  static constexpr std::size_t kRequests = 8192;  // posts in a life

  End(cm::Engine& engine, const Source& source, Totals& totals);
  ~End();

  // The peer's memory becomes known and all Receives are posted. Call once, before anything else.
  void meet(End& peer);
  // Posts one request of some kind if there is room and the peer has a Receive for it; the ids of a life go to both
  // queues. False: used up, closed, or full.
  bool post(std::mt19937& random);
  // Takes what has completed, at most a batch. How many.
  std::size_t poll();
  // Nothing was posted for which no completion came. Call when no other thread uses this end any more.
  void finish();

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  [[nodiscard]] verbs::CompletionQueue& cq() { return cq_; }
  [[nodiscard]] bool used_up() const { return next_id_.load() >= kRequests; }

 private:
  enum : std::uint8_t { kFree, kPosted, kCompleted };

  [[nodiscard]] bool post(verbs::SendOp op, std::uint32_t length);
  [[nodiscard]] std::optional<std::uint64_t> take_id();
  void post_recv(std::size_t slice);
  void completed(const verbs::Completion& c);

  const Source& source_;
  Totals& totals_;
  std::vector<std::byte> memory_;  // receives, then a target of Writes, then a sink of Reads
  verbs::MemoryRegion region_;
  verbs::CompletionQueue cq_;
  std::shared_ptr<verbs::QueuePair> qp_;
  End* peer_ = nullptr;
  std::atomic<int> credits_{0};    // Receives of the peer not spoken for
  std::atomic<int> room_{kSends};  // in the completion queue, for what is posted to the send queue
  std::atomic<std::uint64_t> next_id_{0};
  std::vector<std::atomic<std::uint8_t>> states_;  // by id
  std::vector<std::atomic<std::uint8_t>> slices_;  // by id of a Receive: where it goes
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(cm::Engine& client_engine, const Source& client_source, cm::Engine& server_engine,
          const Source& server_source, Totals& totals);
  ~Session();

  // Starts to connect over `lower`; `id` travels as private data, so that the acceptor finds this session.
  void connect(llp::LowerLayer& lower, std::uint16_t port, std::uint64_t id);
  void accept(llp::ConnectRequest& request);

  // Every fourth session may end within its startup; the others once they are connected at both ends, or failed to be.
  [[nodiscard]] bool may_end();
  // One of the ways a connection may end, the orderly ones included. Keeps itself alive as long as that takes.
  void end(std::mt19937& random);

  End client, server;

 private:
  using Handle = std::shared_ptr<llp::Connection>;

  void established(Handle& slot, const Error& error, const Handle& connection);
  [[nodiscard]] Handle get(const Handle& slot);
  void until_over(const Handle& connection);

  Totals& totals_;
  std::mutex mu_;
  Handle client_connection_, server_connection_;
  bool hasty_ = false, failed_ = false;
};

}  // namespace iwarp::soak
