// The two ends of one connection of a MemoryNetwork. Internal to rpc.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "iwarp/rpc/channel.h"

namespace iwarp::rpc {

// Everything is executed by memcpy when it is posted, under one lock.
class MemoryLink : public std::enable_shared_from_this<MemoryLink> {
 public:
  // `lose_send`: asked for each Send whether the connection is to end with it.
  MemoryLink(boost::asio::any_io_executor where, std::function<bool()> lose_send)
      : where_(std::move(where)), lose_send_(std::move(lose_send)) {}

  // Side 0 is the client's.
  [[nodiscard]] std::unique_ptr<Channel> end(unsigned side);
  void set_data(unsigned side, ConstBytes announced);
  [[nodiscard]] ConstBytes data(unsigned side) const { return ends_[side].data; }
  // Both ends see the connection lost. False: it has ended before.
  bool cut();

 private:
  friend class MemoryChannel;
  struct Region {
    MutBytes memory{};
    std::optional<rpcrdma::RemoteAccess> access{};  // none: local only
    bool remote_invalidation = false;
  };
  struct End {
    std::vector<std::byte> data;  // announced
    std::unordered_map<std::uint32_t, Region> regions;
    std::deque<std::pair<std::uint64_t, MutBytes>> receives;
    std::deque<rpcrdma::Completion> completions;
    std::shared_ptr<const std::function<void()>> wake;
    bool armed = false;
  };

  // Those below need mu_.
  void complete(unsigned side, const rpcrdma::Completion& completion);
  void end_connection();
  [[nodiscard]] bool arrive(unsigned to, std::span<const rpcrdma::LocalSlice> from, std::optional<Stag> invalidate);
  [[nodiscard]] std::byte* reach(unsigned side, Stag handle, std::uint64_t offset, std::size_t octets,
                                 rpcrdma::RemoteAccess access);

  const boost::asio::any_io_executor where_;
  const std::function<bool()> lose_send_;
  std::mutex mu_;
  std::array<End, 2> ends_;
  std::uint32_t next_stag_ = 0x100;
  bool over_ = false;
};

}  // namespace iwarp::rpc
