// `dropin_stress connects`: connections that take random courses, several at once, each with a client and a server in
// a thread of its own.
#include "tests/dropin/stress_end.h"
//
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>

namespace iwarp::stress {
namespace {

constexpr std::string_view kNo = "no";
constexpr int kBacklog = 16;

rdma_event_channel* make_channel() {
  rdma_event_channel* const made = ::rdma_create_event_channel();
  DEMAND(made != nullptr);
  return made;
}

// --- The client

class Client {
 public:
  Client() : channel_(make_channel()) {}
  ~Client() { ::rdma_destroy_event_channel(channel_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void run(const Course& course, Shared& shared) {
    Doing::now("waits for the server");
    while (shared.port == 0) pause_us(100);
    if (course.start == Start::kCrowd) {
      crowd(course, shared);
    } else {
      alone(course, shared);
    }
    shared.client_gone = true;
  }

 private:
  // With an event channel of its own, or the one that is there.
  [[nodiscard]] std::unique_ptr<End> make(const Course& course, Shared& shared, bool own_channel) const {
    rdma_event_channel* const own = own_channel ? make_channel() : nullptr;
    rdma_cm_id* id = nullptr;
    DEMAND(::rdma_create_id(own != nullptr ? own : channel_, &id, nullptr, RDMA_PS_TCP) == 0);
    return std::make_unique<End>(course, Side::kClient, shared, id, own);
  }

  void alone(const Course& course, Shared& shared) const {
    const auto end = make(course, shared, course.of(Side::kClient).own_channel);
    Doing::now("begins");
    const unsigned stage = course.start == Start::kGivenUpEarly ? course.stage : kStages;
    if (stage >= 1) end->resolve_address();
    if (stage >= 2) end->resolve_route();
    if (stage >= 3) end->prepare();
    if (stage < kStages) return end->finish();
    Doing::now("connects");
    end->connect();
    if (course.start == Start::kGivenUp) {
      pause_us(course.pause_us);
      return end->finish();
    }
    const auto type = end->outcome();
    judge(course.start, type, *end);
    if (type == RDMA_CM_EVENT_ESTABLISHED) end->converse();
    end->finish();
  }

  static void judge(Start start, rdma_cm_event_type type, const End& end) {
    switch (start) {
      case Start::kConnects:
        return DEMAND_OR_SAY(type == RDMA_CM_EVENT_ESTABLISHED, ::rdma_event_str(type));
      case Start::kRejected:
        DEMAND_OR_SAY(type == RDMA_CM_EVENT_REJECTED, ::rdma_event_str(type));
        return DEMAND_OR_SAY(end.rejection().starts_with(kNo), end.rejection());
      case Start::kDropped:
      case Start::kNobody:
        return DEMAND_OR_SAY(type == RDMA_CM_EVENT_REJECTED, ::rdma_event_str(type));
      case Start::kAcceptedAndGone:  // a matter of time
      case Start::kGivenUp:
      case Start::kGivenUpEarly:
      case Start::kCrowd:
        return;
    }
  }

  // Nobody of them is accepted.
  void crowd(const Course& course, Shared& shared) const {
    std::vector<std::unique_ptr<End>> ends;
    for (unsigned i = 0; i < course.crowd; ++i) {
      ends.push_back(make(course, shared, true));
      ends.back()->resolve_address();
      ends.back()->resolve_route();
      ends.back()->prepare();
    }
    for (const auto& end : ends) end->connect();
    for (const auto& end : ends) {
      const auto type = end->outcome();
      DEMAND_OR_SAY(type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_UNREACHABLE, ::rdma_event_str(type));
      end->finish();
    }
  }

  rdma_event_channel* channel_;
};

// --- The server

class Server {
 public:
  Server() : channel_(make_channel()) {}
  ~Server() {
    stop();
    ::rdma_destroy_event_channel(channel_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void run(const Course& course, Shared& shared) {
    if (course.start != Start::kConnects) shared.may_end = true;
    Doing::now("listens");
    switch (course.start) {
      case Start::kNobody:
        listen();
        stop_at(shared);
        return;
      case Start::kGivenUpEarly:
        listen();
        shared.port = port();
        return;
      case Start::kCrowd:
        return crowd(course, shared);
      default:
        listen();
        shared.port = port();
        answer(course, shared);
    }
  }

 private:
  void listen() {
    if (listener_ == nullptr) listener_ = make_listener(channel_, kBacklog);
  }
  void stop() {
    if (listener_ != nullptr) DEMAND(::rdma_destroy_id(listener_) == 0);
    listener_ = nullptr;
  }
  void stop_at(Shared& shared) {
    const std::uint16_t last = port();
    stop();
    shared.port = last;
  }
  [[nodiscard]] std::uint16_t port() const { return ntohs(::rdma_get_src_port(listener_)); }

  // Null: the client has gone without one.
  [[nodiscard]] rdma_cm_id* take_request(const Course& course, const Shared& shared) const {
    Doing::now("waits for a request");
    const auto until = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      const bool gone = shared.client_gone;
      rdma_cm_event* const event = next_event(channel_, std::chrono::milliseconds(20));
      if (event == nullptr) {
        if (gone) return nullptr;
        DEMAND(std::chrono::steady_clock::now() < until);
        continue;
      }
      DEMAND_OR_SAY(event->event == RDMA_CM_EVENT_CONNECT_REQUEST, ::rdma_event_str(event->event));
      DEMAND(event->listen_id == listener_);
      unsigned number = 0;
      DEMAND(event->param.conn.private_data_len >= sizeof number);
      std::memcpy(&number, event->param.conn.private_data, sizeof number);
      rdma_cm_id* const id = event->id;
      DEMAND(::rdma_ack_cm_event(event) == 0);
      if (number == course.number) return id;
      DEMAND(::rdma_destroy_id(id) == 0);  // of a client that has gone since
    }
  }

  void answer(const Course& course, Shared& shared) const {
    rdma_cm_id* const id = take_request(course, shared);
    if (id == nullptr) return DEMAND(course.start == Start::kGivenUp);
    Doing::now("answers");
    rdma_event_channel* own = nullptr;
    if (course.of(Side::kServer).own_channel) {
      own = make_channel();
      DEMAND(::rdma_migrate_id(id, own) == 0);
    }
    End end(course, Side::kServer, shared, id, own);
    if (course.start == Start::kDropped) return end.finish();
    if (course.start == Start::kRejected) {
      DEMAND(::rdma_reject(id, kNo.data(), static_cast<std::uint8_t>(kNo.size())) == 0);
      return end.finish();
    }
    end.prepare();
    end.accept();
    if (course.start == Start::kAcceptedAndGone) {
      pause_us(course.pause_us);
      return end.finish();
    }
    const auto type = end.outcome();
    if (type == RDMA_CM_EVENT_ESTABLISHED) {
      end.converse();
    } else {
      DEMAND_OR_SAY(shared.may_end, ::rdma_event_str(type));
    }
    end.finish();
  }

  static void crowd(const Course& course, Shared& shared) {
    rdma_event_channel* const channel = make_channel();
    rdma_cm_id* const listener = make_listener(channel, kBacklog);
    shared.port = ntohs(::rdma_get_src_port(listener));
    std::vector<rdma_cm_id*> taken;
    Doing::now("waits for a crowd");
    while (taken.size() < course.taken) {
      rdma_cm_event* const event = next_event(channel, kPatience);
      DEMAND(event != nullptr && event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
      taken.push_back(event->id);
      DEMAND(::rdma_ack_cm_event(event) == 0);
    }
    pause_us(course.pause_us);
    DEMAND(::rdma_destroy_id(listener) == 0);
    for (rdma_cm_id* const id : taken) DEMAND(::rdma_destroy_id(id) == 0);
    ::rdma_destroy_event_channel(channel);
  }

  rdma_event_channel* channel_;
  rdma_cm_id* listener_ = nullptr;
};

// What one side had as completed when it ended politely the other one has, unless that ended as well.
void compare(const Course& course, Shared& shared) {
  for (const Side side : {Side::kClient, Side::kServer}) {
    const Plan& plan = course.of(side);
    auto& peer = shared.of(other(side));
    if (!plan.ends || course.of(other(side)).ends || plan.way == Way::kDeregister || !peer.saw_the_end) continue;
    DEMAND_OR_SAY(peer.received >= shared.of(side).sent, std::to_string(shared.of(side).sent) + " messages sent, " +
                                                             std::to_string(peer.received) +
                                                             " arrived: " + course.text());
  }
}

// The connection that has taken longest.
class Slowest {
 public:
  void tell(const Course& course, std::chrono::nanoseconds time) {
    const std::lock_guard lock(mutex_);
    if (time <= time_) return;
    time_ = time;
    text_ = course.text();
  }
  [[nodiscard]] std::string text() {
    const std::lock_guard lock(mutex_);
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time_).count()) + " ms: " + text_;
  }

 private:
  std::mutex mutex_;
  std::chrono::nanoseconds time_{0};
  std::string text_;
};
Slowest slowest;

template <class Who>
void run_side(const std::vector<Course>& courses, std::deque<Shared>& shared, unsigned first, unsigned step,
              std::deque<std::atomic<int>>& sides_done) {
  const Doing doing("begins");
  Who who;
  for (std::size_t i = first; i < courses.size(); i += step) {
    Doing::number(courses[i].number);
    const auto began = std::chrono::steady_clock::now();
    who.run(courses[i], shared[i]);
    slowest.tell(courses[i], std::chrono::steady_clock::now() - began);
    if (sides_done[i].fetch_add(1) == 1 && courses[i].start == Start::kConnects) compare(courses[i], shared[i]);
  }
}

void run(const std::vector<Course>& courses, unsigned threads) {
  std::deque<Shared> shared(courses.size());
  std::deque<std::atomic<int>> sides_done(courses.size());
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&, i] { run_side<Server>(courses, shared, i, threads, sides_done); });
    running.emplace_back([&, i] { run_side<Client>(courses, shared, i, threads, sides_done); });
  }
  for (auto& thread : running) thread.join();
}

}  // namespace

void connects(const Settings& settings) {
  std::vector<Course> courses;
  for (unsigned i = 0; i < settings.count; ++i) {
    if (settings.only < 0 || static_cast<unsigned>(settings.only) == i) courses.emplace_back(settings.seed, i);
  }
  if (settings.list) {
    for (const Course& course : courses) std::printf("%s\n", course.text().c_str());
    return;
  }
  // Once, for what a process makes at first use and keeps.
  std::vector<Course> usual;
  for (unsigned i = 0; usual.empty(); ++i) {
    if (Course(0, i).start == Start::kConnects) usual.emplace_back(0, i);
  }
  run(usual, 1);
  const std::size_t before = descriptors();
  run(courses, settings.threads);
  demand_descriptors(before);
  std::printf("%zu connections tried, %u ends established; %u requests completed, %u failed; %u octets compared\n",
              courses.size(), totals.established.load(), totals.completed.load(), totals.failed.load(),
              totals.compared_octets.load());
  std::printf("slowest: %s\n", slowest.text().c_str());
}

}  // namespace iwarp::stress
