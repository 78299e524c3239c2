// One end of an rping: the conversation of either role. What is said per iteration: the client advertises a source
// buffer (Send), the server reads it (RDMA Read) and acknowledges (Send); the client advertises a sink, the server
// writes the data back (RDMA Write) and acknowledges.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/cm/connection.h"
#include "iwarp/verbs/memory_region.h"
#include "tools/interruption.h"
#include "tools/json_file.h"
#include "tools/llp_flags.h"
#include "tools/policy_flags.h"
#include "tools/recorder.h"
#include "tools/rping_report.h"

namespace iwarp::tools::rping {

// Of the command line.
struct Flags {
  bool server = false;
  bool client = false;
  bool persistent = false;
  bool verbose = false;
  bool validate = false;
  bool debug = false;
  bool same_as_ever = false;  // -q
  std::string address;
  std::string source;  // empty: the kernel chooses
  std::uint16_t port = 7174;
  std::uint32_t size = 64;
  std::uint64_t count = 0;
  std::optional<unsigned> timeout_seconds;  // of the command line; 0: for ever
  PolicyFlags policy;
  LlpFlags llp;
  RecorderFlags recorder;
  JsonFlag json;

  // How long a step may take for which there is `usual` unless the user said something else.
  [[nodiscard]] std::chrono::milliseconds patience(std::chrono::milliseconds usual) const;
  // What is asked for, or answered, over the lower layer that was chosen.
  [[nodiscard]] mpa::Policy connection_policy() const;
  // Whether pings are printed: not where standard output gets a JSON document.
  [[nodiscard]] bool prints_pings() const { return verbose && !json.on_standard_output(); }
};

inline constexpr std::size_t kInfoBytes = 16;  // 0 buffer address (8) | 8 rkey (4) | 12 size (4)

// One for the message whose turn it is, one for a message out of turn, so that it can be named.
inline constexpr std::size_t kReceives = 2;

// What both roles share: queue pair, completion queue, the message buffers and the data buffers.
class Side {
 public:
  // `flags` and `interruption` must outlive it. Throws std::runtime_error when it gets no memory.
  Side(cm::Engine& engine, const Interruption& interruption, const Flags& flags);
  // The engine may still hold the queue pair, which names our completion queue.
  ~Side() { qp_->abort(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Whether all went well. Otherwise the connection has ended too early, ended(), or the caller ends it: error() says
  // why, or the user pressed Ctrl-C. Throws StandardOutputError.
  bool ping_client(llp::Connection& connection);
  bool pong_server(llp::Connection& connection);
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return qp_; }
  // The connection ended while this side still wanted something of it.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  // What the peer did wrong; empty: nothing.
  [[nodiscard]] const std::string& error() const { return error_; }
  // Pings that were finished.
  [[nodiscard]] std::uint64_t pings() const { return pings_; }
  [[nodiscard]] const RoundTrips& round_trips() const { return round_trips_; }

 private:
  verbs::MemoryRegion add(MutBytes memory, ddp::Access access);
  Result<void> post_recv(std::size_t i);
  bool send_info(const verbs::MemoryRegion& advertised, std::uint32_t size);
  // Posts and waits for the completion. Receives that complete meanwhile are counted.
  bool run(const verbs::SendWr& wr);
  bool await_message();
  bool pump();
  // False, and remembers the error.
  bool fail(std::string error);
  // False, and remembers that the connection has ended.
  bool end();

  const Flags& flags_;
  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  std::array<std::byte, kInfoBytes> send_{};
  std::array<std::byte, kReceives * kInfoBytes> recv_{};
  std::vector<std::byte> data_, source_;
  std::shared_ptr<verbs::QueuePair> qp_;
  verbs::MemoryRegion send_mr_, recv_mr_, data_mr_, source_mr_;
  // What the peer advertises.
  struct Remote {
    std::uint64_t to = 0;
    Stag stag{};
    std::uint32_t size = 0;
  };
  std::size_t sends_done_ = 0;
  Remote remote_;                   // of the message last waited for
  std::optional<Remote> received_;  // not yet waited for
  bool ended_ = false;              // the connection, by whatever cause
  bool timed_out_ = false;
  std::string error_;
  std::uint64_t pings_ = 0;
  RoundTrips round_trips_;
  std::optional<Interruption::Hook> end_;
};

}  // namespace iwarp::tools::rping
