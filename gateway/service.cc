#include "iwarp/gateway/service.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "iwarp/gateway/rdma_front.h"
#include "iwarp/gateway/tcp_front.h"

namespace iwarp::gateway {
namespace {

bool same_place(const ListenerSettings& a, const ListenerSettings& b) {
  return a.direction == b.direction && a.listen == b.listen && a.options.device == b.options.device &&
         a.options.sctp == b.options.sctp;
}

// A port of 0 is another one each time.
bool same_socket(const ListenerSettings& a, const ListenerSettings& b) {
  return same_place(a, b) && (a.listen.port() != 0 || a.name == b.name);
}

bool same_name(const ListenerSettings& a, const ListenerSettings& b) {
  return a.name == b.name;
}

}  // namespace

const char* name(Direction direction) {
  switch (direction) {
    case Direction::kRdmaToTcp:
      return "rdma-to-tcp";
    case Direction::kTcpToRdma:
      return "tcp-to-rdma";
  }
  return "?";
}

Service::Service(cm::Engine& engine, const ProcessOptions& options)
    : engine_(engine), process_(std::make_shared<Process>(engine, options)) {}

// A session that is being made holds the process, and may be at a worker, which must not outlive the engine.
Service::~Service() {
  running_.clear();
  retired_.clear();
  process_->end();
}

Parsed<std::shared_ptr<Front>> Service::open(const ListenerSettings& s) {
  Parsed<std::shared_ptr<Front>> out;
  const auto take = [&](auto opened) {
    if (opened) {
      out.value = std::move(*opened);
    } else {
      out.error = fmt::format("{}cannot listen on {}: {}", s.name.empty() ? "" : s.name + ": ", cm::to_string(s.listen),
                              opened.error().why);
      for (const Running& other : running_) {
        if (s.listen.port() != 0 && other.front->local().port() == s.listen.port())
          out.error += fmt::format("; {} listens there until a restart", cm::to_string(other.front->local()));
      }
    }
  };
  // Says more than the error of a front can.
  if (const auto provider = process_->provider(s.options); !provider) {
    out.error = (s.name.empty() ? "" : s.name + ": ") + provider.error;
    return out;
  }
  if (s.direction == Direction::kRdmaToTcp) {
    take(RdmaFront::open(engine_, s.listen, s.server, s.options, process_, s.name));
  } else {
    take(TcpFront::open(engine_, s.listen, s.server, s.options, process_, s.name));
  }
  return out;
}

Parsed<Service::Changes> Service::apply(const ServiceSettings& to) {
  // Which of those that run each is.
  std::vector<std::optional<std::size_t>> was(to.listeners.size());
  std::vector<bool> stays(running_.size());
  for (const auto same : {same_socket, same_name}) {
    for (std::size_t i = 0; i < was.size(); ++i) {
      for (std::size_t r = 0; r < running_.size() && !was[i]; ++r) {
        if (stays[r] || !same(to.listeners[i], running_[r].settings)) continue;
        was[i] = r;
        stays[r] = true;
      }
    }
  }
  process_->start_workers();
  std::vector<std::shared_ptr<Front>> opened(to.listeners.size());
  for (std::size_t i = 0; i < was.size(); ++i) {
    if (was[i] && same_place(to.listeners[i], running_[*was[i]].settings)) continue;
    auto front = open(to.listeners[i]);
    if (!front) return {std::nullopt, front.error};
    opened[i] = std::move(*front.value);
  }
  // Nothing fails from here.
  process_->change(to.process);
  Changes changes;
  std::vector<Running> next;
  for (std::size_t i = 0; i < was.size(); ++i) {
    const ListenerSettings& settings = to.listeners[i];
    if (!was[i]) {
      ++changes.added;
      next.push_back({settings, std::move(opened[i])});
      continue;
    }
    Running& before = running_[*was[i]];
    if (!(before.settings == settings)) ++changes.changed;
    if (opened[i]) {
      next.push_back({settings, std::move(opened[i])});
      retire(std::move(before));
    } else {
      before.front->change(settings.name, settings.server, settings.options);
      next.push_back({settings, std::move(before.front)});
    }
  }
  for (std::size_t r = 0; r < running_.size(); ++r) {
    if (stays[r]) continue;
    ++changes.removed;
    retire(std::move(running_[r]));
  }
  running_ = std::move(next);
  return {changes, {}};
}

void Service::retire(Running running) {
  Front* const front = running.front.get();
  retired_.push_back(std::move(running));
  front->retire([this, alive = std::weak_ptr<bool>(alive_), front] {
    if (alive.expired()) return;
    past_ += front->snapshot();
    std::erase_if(retired_, [&](const Running& r) { return r.front.get() == front; });
  });
}

void Service::drain(std::function<void()> done) {
  auto left = std::make_shared<std::size_t>(running_.size() + retired_.size());
  if (*left == 0) {
    boost::asio::post(engine_.io(), std::move(done));
    return;
  }
  const auto one = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (const Running& r : running_) r.front->drain(one);
  for (const Running& r : retired_) r.front->drain(one);
}

FrontStatus Service::status(const Running& r, bool listening) const {
  return {.name = r.settings.name,
          .direction = r.settings.direction,
          .local = r.front->local(),
          .server = r.settings.server,
          .listening = listening,
          .connections = r.front->connections(),
          .stats = r.front->snapshot()};
}

std::vector<FrontStatus> Service::fronts() const {
  std::vector<FrontStatus> out;
  for (const Running& r : running_) out.push_back(status(r, true));
  for (const Running& r : retired_) out.push_back(status(r, false));
  return out;
}

Stats::Snapshot Service::snapshot() const {
  Stats::Snapshot sum = past_;
  for (const Running& r : running_) sum += r.front->snapshot();
  for (const Running& r : retired_) sum += r.front->snapshot();
  return sum;
}

}  // namespace iwarp::gateway
