// What both ends of a test over iWARP share: engine, queue pair, a registered region, and notes - Sends of eight octets
// with which the ends agree on the beginning and the end of runs. For one connection, used by one thread.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "iwarp/verbs/memory_region.h"
#include "tools/layer_handle.h"
#include "tools/perf/end.h"

namespace iwarp::tools::perf {

// The first four octets of a note, and of every message of the Send tests.
enum class Note : std::uint32_t {
  kData = 0,    // bulk
  kEnd = 1,     // the run is over: answer when all of it has arrived
  kVerify = 2,  // compare with the pattern of the seed in `value`
  kFill = 3,    // fill the region with the pattern of that seed
  kGood = 4,    // answers
  kBad = 5,
  kCredit = 6,  // `value` more Sends may come
};

inline constexpr std::size_t kNoteBytes = 8;

struct Message {
  Note note = Note::kData;
  std::uint32_t value = 0;
};
void write_message(std::byte* at, Message m);
[[nodiscard]] Message read_message(const std::byte* at);

// The region of the other end.
struct Remote {
  Stag stag{};
  std::uint64_t to = 0;
};

// Taps the connections of this end; empty: none does. Set it before any test begins.
extern cm::TapMaker tap_maker;

// What the spec and its profile say. A test sets more in the latter.
[[nodiscard]] mpa::Policy policy_of(const Spec& spec);
[[nodiscard]] stream::Options stream_of(const Spec& spec);
// Of the regions, the same at both ends: what peers may do to that of the passive one.
[[nodiscard]] ddp::Access region_access(const Spec& spec);
[[nodiscard]] cm::Engine::Mode mode_of(const Spec& spec);
// Throws std::runtime_error: this build, or this process, has none.
[[nodiscard]] LayerHandle lower_layer_of(const Spec& spec, cm::Engine& engine);

// Whether the result of an asynchronous call is there, after some waiting. Throws when interrupted.
template <class T>
bool ready(cm::Engine& engine, bool manual, const std::future<T>& result) {
  using namespace std::chrono_literals;
  if (interrupted) throw std::runtime_error("interrupted");
  if (!manual) return engine.wait_for(result, 100ms);
  engine.poll();
  return result.wait_for(0ms) == std::future_status::ready;
}

template <class T>
T await(cm::Engine& engine, bool manual, std::future<T> result) {
  while (!ready(engine, manual, result)) {
  }
  return result.get();
}

// What a call of a lower layer tells its handler.
template <class T>
class Told {
 public:
  [[nodiscard]] std::function<void(Error, T)> handler() {
    return [promise = promise_](const Error& error, T what) { promise->set_value({error, std::move(what)}); };
  }
  [[nodiscard]] std::future<std::pair<Error, T>> result() { return promise_->get_future(); }

 private:
  std::shared_ptr<std::promise<std::pair<Error, T>>> promise_ = std::make_shared<std::promise<std::pair<Error, T>>>();
};
using Joined = Told<std::shared_ptr<llp::Connection>>;

class RdmaSide {
 public:
  // `recv_depth` 0: receives for notes are posted, and no others may be. Else the caller posts up to so many of its
  // own, and notes arrive there as well: receives are used in the order of posting.
  RdmaSide(const Spec& spec, cm::Engine& engine, std::size_t recv_depth);
  ~RdmaSide();
  RdmaSide(const RdmaSide&) = delete;
  RdmaSide& operator=(const RdmaSide&) = delete;

  void connect(const std::string& host, std::uint16_t port);
  void accept(llp::ConnectRequest& request);

  [[nodiscard]] const Spec& spec() const { return spec_; }
  [[nodiscard]] verbs::QueuePair& qp() { return *qp_; }
  [[nodiscard]] std::span<std::byte> region() { return region_; }
  [[nodiscard]] verbs::Sge slice(std::size_t at, std::size_t size) {
    return {&region_[at], static_cast<std::uint32_t>(size), mr_.stag()};
  }
  [[nodiscard]] const Remote& remote() const { return remote_; }

  // Throws when refused. When the connection has ended, poll() finds the request flushed, and ended() tells.
  void post(std::span<const verbs::SendWr> list);
  // As post().
  void post_receive(std::uint64_t id, verbs::Sge where);
  void post_receives(std::span<const verbs::RecvWr> list);
  void say(Message m);
  // A chance for I/O: manual engines poll, others sleep until there is a completion, at most 100 ms.
  void progress();
  // Up to out.size() completions, without waiting. Throws when one failed. Completions of notes sent are left out.
  [[nodiscard]] std::span<verbs::Completion> poll(std::span<verbs::Completion> out);
  // False when the connection has ended. Waits for at least one.
  [[nodiscard]] std::span<verbs::Completion> wait(std::span<verbs::Completion> out);
  // Whether the completion is of a note received; then `m` is it and its receive is posted again.
  [[nodiscard]] bool is_note(const verbs::Completion& c, Message& m);
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  [[nodiscard]] std::vector<std::byte> introduction() const;
  void introduced(const std::vector<std::byte>& private_data);

  Spec spec_;
  cm::Engine& engine_;
  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  std::vector<std::byte> region_;
  std::vector<std::byte> notes_;  // received ones, then those to send
  verbs::MemoryRegion mr_, notes_mr_;
  std::shared_ptr<verbs::QueuePair> qp_;
  Remote remote_;
  std::size_t next_note_ = 0;
  bool ended_ = false;
  LayerHandle layer_;  // of connect()
};

}  // namespace iwarp::tools::perf
