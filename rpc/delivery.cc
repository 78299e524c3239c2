#include "iwarp/rpc/delivery.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace iwarp::rpc {
namespace {

thread_local bool delivering = false;

// This thread is at it; what it does not come to is posted.
class Turn {
 public:
  Turn(boost::asio::io_context& io, std::vector<std::function<void()>>& acts) : io_(io), acts_(acts) {
    delivering = true;
  }
  ~Turn() {
    delivering = false;
    while (next_ < acts_.size()) boost::asio::post(io_, std::move(acts_[next_++]));
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  void run() {
    while (next_ < acts_.size()) std::exchange(acts_[next_++], {})();
  }

 private:
  boost::asio::io_context& io_;
  std::vector<std::function<void()>>& acts_;
  std::size_t next_ = 0;
};

}  // namespace

void deliver(boost::asio::io_context& io, std::vector<std::function<void()>> acts) {
  if (acts.empty()) return;
  if (delivering) {
    for (auto& act : acts) boost::asio::post(io, std::move(act));
    return;
  }
  Turn(io, acts).run();
}

}  // namespace iwarp::rpc
