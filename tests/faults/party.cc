#include "tests/faults/party.h"

namespace iwarp::faults {
namespace {

constexpr std::size_t kMemoryBytes = 32 * 1024;
using Clock = std::chrono::steady_clock;

}  // namespace

Party::Party(cm::Engine& engine, const stream::Options& options,
             const std::vector<std::pair<std::size_t, std::size_t>>& receives)
    : node(engine, options, kMemoryBytes) {
  for (std::uint64_t id = 0; id < receives.size(); ++id) {
    node.recv(id, receives[id].first, receives[id].second);
    posted_[id];
  }
}

bool Party::post(verbs::SendOp op, std::size_t offset, std::size_t length, const Party& peer) {
  const bool read = op == verbs::SendOp::kRead;
  test::Bytes& local = read ? node.in : node.out;
  const verbs::MemoryRegion& local_mr = read ? node.in_mr : node.out_mr;
  const verbs::MemoryRegion& remote_mr = read ? peer.node.out_mr : peer.node.in_mr;
  const verbs::Sge sge{local.data() + offset, static_cast<std::uint32_t>(length), local_mr.stag()};
  verbs::SendWr wr{.wr_id = ++next_post_, .op = op, .sges = sge};
  if (op != verbs::SendOp::kSend) {
    wr.remote_stag = remote_mr.stag();
    wr.remote_to = remote_mr.base_to() + offset;
  }
  const auto ok = node.qp->post_send(wr);
  if (ok) {
    posted_[next_post_];
  } else {
    gave_up_ = true;  // nobody else will end the connection
  }
  return ok.ok();
}

bool Party::await_post(std::chrono::milliseconds patience) {
  return await(next_post_, patience);
}

bool Party::await_message(std::chrono::milliseconds patience) {
  return await(next_message_++, patience);
}

bool Party::await(std::uint64_t id, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    poll();
    if (posted_[id]) return posted_[id]->status == Errc::kOk;
    if (!node.cq.wait_for(deadline - Clock::now()) && node.cq.empty()) {
      gave_up_ = true;
      return false;
    }
  }
}

void Party::poll() {
  verbs::Completion c;
  while (node.cq.poll({&c, 1}) == 1) {
    const auto request = posted_.find(c.wr_id);
    ASSERT_NE(request, posted_.end()) << "completion of what was never posted";
    EXPECT_FALSE(request->second) << "request " << c.wr_id << " completed twice";
    request->second = c;
  }
}

void Party::check_at_end(const Party& peer) {
  poll();
  for (const auto& [id, completion] : posted_) EXPECT_TRUE(completion) << "request " << id << " never completed";
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    const bool intact = node.in[i] == std::byte{0} || node.in[i] == peer.node.out[i];
    ASSERT_TRUE(intact) << "octet " << i << " was never sent";
  }
}

}  // namespace iwarp::faults
