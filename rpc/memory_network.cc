#include "iwarp/rpc/memory_network.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>
#include <vector>

#include "iwarp/rpc/memory_link.h"

namespace iwarp::rpc {

class MemoryNetwork::State final : public ClientTransport,
                                   public ServerTransport,
                                   public std::enable_shared_from_this<MemoryNetwork::State> {
 public:
  explicit State(boost::asio::any_io_executor where) : where_(std::move(where)) {}

  // ClientTransport
  void connect(ConstBytes announce, Connected connected) override {
    std::shared_ptr<Come> come;
    {
      const std::lock_guard lock(mu_);
      if (!refused_) come = come_;
    }
    if (!come) {
      return boost::asio::post(
          where_, [connected = std::move(connected)] { connected(make_error(Errc::kConnectionRefused), nullptr); });
    }
    auto link = std::make_shared<MemoryLink>(where_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      return self && self->lose_send();
    });
    link->set_data(0, announce);
    {
      const std::lock_guard lock(mu_);
      std::erase_if(links_, [](const auto& old) { return old.expired(); });
      links_.push_back(link);
    }
    const auto told = std::make_shared<std::atomic<bool>>(false);
    const auto tell = std::make_shared<Connected>(std::move(connected));
    Incoming incoming;
    incoming.channel = link->end(1);
    // Dropped without a decision: refused.
    const std::shared_ptr<void> undecided(nullptr, [where = where_, told, tell](void*) {
      if (!told->exchange(true))
        boost::asio::post(where, [tell] { (*tell)(make_error(Errc::kPeerRejected), nullptr); });
    });
    incoming.accept = [where = where_, link, told, tell, undecided](ConstBytes own,
                                                                    std::function<void(const Error&)> established) {
      if (told->exchange(true)) return;
      link->set_data(1, own);
      boost::asio::post(where, [link, tell, established = std::move(established)] {
        established({});
        (*tell)({}, link->end(0));
      });
    };
    boost::asio::post(
        where_, [come, parcel = std::make_shared<Incoming>(std::move(incoming))] { (*come)(std::move(*parcel)); });
  }
  void cancel() override {}

  // ServerTransport
  [[nodiscard]] Result<void> listen(Come come) override {
    const std::lock_guard lock(mu_);
    if (come_) return make_error(Errc::kInvalidArgument, "somebody listens already");
    come_ = std::make_shared<Come>(std::move(come));
    return {};
  }
  void stop() override {
    const std::lock_guard lock(mu_);
    come_.reset();
  }

  std::size_t cut() {
    std::vector<std::shared_ptr<MemoryLink>> all;
    {
      const std::lock_guard lock(mu_);
      for (const auto& weak : links_) {
        if (auto link = weak.lock()) all.push_back(std::move(link));
      }
      links_.clear();
    }
    std::size_t lived = 0;
    for (const auto& link : all) lived += link->cut() ? 1 : 0;
    return lived;
  }
  void cut_at_send(std::uint64_t n) { sends_left_ = n; }
  void refuse(bool refused) {
    const std::lock_guard lock(mu_);
    refused_ = refused;
  }

 private:
  bool lose_send() {
    std::uint64_t left = sends_left_;
    while (left > 0 && !sends_left_.compare_exchange_weak(left, left - 1)) {
    }
    return left == 1;
  }

  const boost::asio::any_io_executor where_;
  std::mutex mu_;
  std::shared_ptr<Come> come_;
  std::vector<std::weak_ptr<MemoryLink>> links_;
  bool refused_ = false;
  std::atomic<std::uint64_t> sends_left_{0};
};

MemoryNetwork::MemoryNetwork(boost::asio::any_io_executor where) : state_(std::make_shared<State>(std::move(where))) {}

MemoryNetwork::~MemoryNetwork() {
  state_->stop();
  state_->cut();
}

std::shared_ptr<ClientTransport> MemoryNetwork::client() {
  return state_;
}

std::shared_ptr<ServerTransport> MemoryNetwork::server() {
  return state_;
}

std::size_t MemoryNetwork::cut() {
  return state_->cut();
}

void MemoryNetwork::cut_at_send(std::uint64_t n) {
  state_->cut_at_send(n);
}

void MemoryNetwork::refuse(bool refused) {
  state_->refuse(refused);
}

}  // namespace iwarp::rpc
