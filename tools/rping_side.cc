#include "tools/rping_side.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstring>
#include <iostream>

#include "iwarp/base/wire.h"
#include "tools/standard_output.h"

namespace iwarp::tools::rping {
namespace {

using ddp::Access;
using verbs::MemoryRegion;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kUsualPatience{60};
constexpr std::chrono::seconds kForEver{1000000000};

void check(const Result<void>& r) {
  if (!r) throw std::runtime_error(r.error().why);
}

// What a peer put into `data`, up to its NUL, fit for a terminal.
std::string printable(ConstBytes data) {
  std::string out;
  for (const std::byte b : data) {
    const auto c = std::to_integer<unsigned char>(b);
    if (c == 0) break;
    out += c >= 0x20 && c < 0x7F ? static_cast<char>(c) : '.';
  }
  return out;
}

// "rdma-ping-7: HIJ...": the letters start one further with each iteration.
void fill(std::span<std::byte> buffer, std::uint64_t iteration) {
  std::array<char, 48> head{};
  const int n = std::snprintf(head.data(), head.size(), "rdma-ping-%d: ", static_cast<int>(iteration));
  const std::size_t text = std::min(static_cast<std::size_t>(n), buffer.size());
  std::memcpy(buffer.data(), head.data(), text);
  char c = static_cast<char>(65 + iteration % 58);
  for (std::size_t i = text; i < buffer.size(); ++i) {
    buffer[i] = static_cast<std::byte>(c);
    c = c == 122 ? char{65} : static_cast<char>(c + 1);
  }
  buffer.back() = std::byte{0};
}

// At once, so that who reads it sees each ping as it happens.
void print(const std::string& line) {
  write_standard_output(line + '\n');
}

}  // namespace

std::chrono::milliseconds Flags::patience(std::chrono::milliseconds usual) const {
  if (!timeout_seconds) return usual;
  return *timeout_seconds == 0 ? kForEver : std::chrono::seconds(*timeout_seconds);
}

mpa::Policy Flags::connection_policy() const {
  return llp.kind() == llp::Kind::kSctp ? policy.policy_for_sctp() : policy.policy();
}

Side::Side(cm::Engine& engine, const Interruption& interruption, const Flags& flags)
    : flags_(flags), pd_(engine.context()), cq_(64, &engine), data_(flags.size), source_(flags.size) {
  verbs::QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq_;
  stream::Options stream;
  flags.policy.apply(stream);
  stream.sq_depth = stream.rq_depth = 8;
  o.stream = stream;
  qp_ = std::make_shared<verbs::QueuePair>(pd_, o);
  send_mr_ = add(send_, Access::kLocalRead);
  recv_mr_ = add(recv_, Access::kLocalWrite);
  data_mr_ = add(data_, Access::kLocalWrite | Access::kRemoteWrite);
  source_mr_ = add(source_, Access::kRemoteRead);
  for (std::size_t i = 0; i < kReceives; ++i) check(post_recv(i));
  end_.emplace(interruption, [this] { qp_->abort(); });  // which wakes who waits for a completion
}

MemoryRegion Side::add(MutBytes memory, Access access) {
  MemoryRegion::Options o;
  o.access = access;
  auto region = MemoryRegion::register_memory(pd_, memory, o);
  if (!region) throw std::runtime_error(region.error().why);
  return std::move(*region);
}

Result<void> Side::post_recv(std::size_t i) {
  return qp_->post_recv({.wr_id = i, .sges = verbs::Sge{recv_.data() + i * kInfoBytes, kInfoBytes, recv_mr_.stag()}});
}

bool Side::send_info(const MemoryRegion& advertised, std::uint32_t size) {
  FixedWriter<kInfoBytes> w{std::span{send_}};
  w.be<0>(advertised ? advertised.to_of(advertised.memory().data()) : std::uint64_t{0});
  w.be<8>(advertised ? raw(advertised.stag()) : std::uint32_t{0});
  w.be<12>(size);
  if (advertised) {
    spdlog::debug("sends an advertisement: {} octets at {:#x}, STag {:#x}", size,
                  advertised.to_of(advertised.memory().data()), raw(advertised.stag()));
  } else {
    spdlog::debug("sends a go-ahead");
  }
  return run({.op = verbs::SendOp::kSend, .sges = verbs::Sge{send_.data(), kInfoBytes, send_mr_.stag()}});
}

bool Side::run(const verbs::SendWr& wr) {
  if (const auto posted = qp_->post_send(wr); !posted) return fail(posted.error().why);
  while (sends_done_ == 0) {
    if (!pump()) return false;
  }
  --sends_done_;
  return true;
}

bool Side::await_message() {
  while (!received_) {
    if (!pump()) return false;
  }
  remote_ = *std::exchange(received_, std::nullopt);
  return true;
}

bool Side::fail(std::string error) {
  error_ = std::move(error);
  return false;
}

bool Side::end() {
  ended_ = true;
  return false;
}

bool Side::pump() {
  verbs::Completion c;
  const auto patience = flags_.patience(kUsualPatience);
  const auto deadline = add_saturating(Clock::now(), patience);
  while (cq_.poll({&c, 1}) == 0) {
    if (!cq_.wait_for(deadline - Clock::now()) && Clock::now() >= deadline) {
      timed_out_ = true;
      return fail(fmt::format("nothing from the {} within {} s (--timeout)", flags_.client ? "server" : "client",
                              std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
    }
  }
  if (c.status != Errc::kOk) return end();
  if (c.op != verbs::WcOp::kRecv) {
    ++sends_done_;
    return true;
  }
  if (c.byte_len != kInfoBytes) {
    return fail(fmt::format("the peer sent a message of {} octets where rping has {}", c.byte_len, kInfoBytes));
  }
  // The one in use has been judged, and is not touched.
  if (received_) return fail("the peer sent a message out of turn");
  const auto v = *FixedView<kInfoBytes>::of(ConstBytes{recv_}.subspan(c.wr_id * kInfoBytes));
  received_ = {v.be<std::uint64_t, 0>(), Stag{v.be<std::uint32_t, 8>()}, v.be<std::uint32_t, 12>()};
  spdlog::debug("received a message: {} octets at {:#x}, STag {:#x}", received_->size, received_->to,
                raw(received_->stag));
  // Where the connection has ended behind this message it is flushed, which the next completion tells.
  const auto posted = post_recv(c.wr_id);
  return posted || fail(posted.error().why);
}

bool Side::ping_client(llp::Connection& connection) {
  for (std::uint64_t i = 0; flags_.count == 0 || i < flags_.count; ++i) {
    fill(source_, i);
    const auto start = Clock::now();
    if (!send_info(source_mr_, flags_.size) || !await_message()) return false;
    if (!send_info(data_mr_, flags_.size) || !await_message()) return false;
    const auto took = Clock::now() - start;
    spdlog::debug("ping {}: RTT {}", i, duration_text(static_cast<double>(took.count()) / 1000));
    if (flags_.validate && std::memcmp(source_.data(), data_.data(), flags_.size) != 0)
      return fail(fmt::format("data mismatch in iteration {}: what came back is not what was sent", i));
    round_trips_.add(took);
    ++pings_;
    if (flags_.prints_pings()) print("ping data: " + printable(data_));
  }
  connection.disconnect();
  return true;
}

bool Side::pong_server(llp::Connection& connection) {
  for (std::uint64_t i = 0;; ++i) {
    // The client decides how often, and ends the connection.
    if (!await_message()) return ended_;
    if (remote_.size > flags_.size) {
      connection.abort();
      return fail(fmt::format("the client pings with {} octets, this server has room for {}: start it with -S {}",
                              remote_.size, flags_.size, remote_.size));
    }
    const verbs::Sge sink{data_.data(), remote_.size, data_mr_.stag()};
    if (!run({.op = verbs::SendOp::kRead, .sges = sink, .remote_stag = remote_.stag, .remote_to = remote_.to}))
      return false;
    if (flags_.prints_pings()) print("server ping data: " + printable(ConstBytes{data_}.first(remote_.size)));
    if (flags_.validate && remote_.size > 0) {
      const auto expected = std::span{source_}.first(remote_.size);
      fill(expected, i);
      if (!std::equal(expected.begin(), expected.end(), data_.begin()))
        return fail(fmt::format("what the client pinged with is not rping's pattern of iteration {}", i));
    }
    if (!send_info({}, 0) || !await_message()) return false;
    const std::size_t text = ::strnlen(reinterpret_cast<const char*>(data_.data()), data_.size() - 1) + 1;
    const verbs::Sge back{data_.data(), static_cast<std::uint32_t>(std::min<std::size_t>(text, remote_.size)),
                          data_mr_.stag()};
    if (!run({.op = verbs::SendOp::kWrite, .sges = back, .remote_stag = remote_.stag, .remote_to = remote_.to}))
      return false;
    if (!send_info({}, 0)) return false;
    ++pings_;
  }
}

}  // namespace iwarp::tools::rping
