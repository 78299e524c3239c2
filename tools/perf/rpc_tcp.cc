#include <algorithm>
#include <cstring>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "tools/perf/rpc_program.h"
#include "tools/perf/rpc_tests.h"
#include "tools/perf/tcp_socket.h"

namespace iwarp::tools::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSeed = 11;
constexpr std::size_t kMark = 4;
constexpr std::uint32_t kLastFragment = 0x80000000;

// An RPC message behind its record mark.
rpc::Octets framed(const rpc::Octets& message) {
  rpc::Octets out(kMark + message.size());
  store_be(MutBytes(out).first(kMark), kLastFragment | static_cast<std::uint32_t>(message.size()));
  std::ranges::copy(message, out.begin() + kMark);
  return out;
}

void send(const TcpSocket& socket, rpc::Octets& record, std::uint32_t xid) {
  store_be(MutBytes(record).subspan(kMark, 4), xid);
  socket.send_all(record.data(), record.size());
}

// Records, as they come. They stay where they were received; those of several that came at once move to the front.
class Records {
 public:
  Records(const TcpSocket& socket, std::uint32_t size) : socket_(socket), memory_(2 * (size + 2 * kRpcHeadBytes)) {}

  // The next one, until the next call; empty at the end of the stream. Throws std::runtime_error when it is too long.
  ConstBytes next() {
    at_ += std::exchange(taken_, 0);
    if (at_ == end_) at_ = end_ = 0;
    if (!have(kMark)) return {};
    const auto mark = load_be<std::uint32_t>(ConstBytes(memory_).subspan(at_, kMark));
    const std::size_t size = mark & ~kLastFragment;
    if ((mark & kLastFragment) == 0 || size == 0 || size > memory_.size() / 2 - kMark)
      throw std::runtime_error("plain TCP: a record is not as long as it may be");
    if (!have(kMark + size)) return {};
    taken_ = kMark + size;
    return ConstBytes(memory_).subspan(at_ + kMark, size);
  }

 private:
  bool have(std::size_t octets) {
    if (at_ + octets > memory_.size()) {
      std::memmove(memory_.data(), memory_.data() + at_, end_ - at_);
      end_ -= std::exchange(at_, 0);
    }
    while (end_ - at_ < octets) {
      const std::size_t n = socket_.receive_some(&memory_[end_], memory_.size() - end_);
      if (n == 0) return false;
      end_ += n;
    }
    return true;
  }

  const TcpSocket& socket_;
  std::vector<std::byte> memory_;
  std::size_t at_ = 0, end_ = 0, taken_ = 0;
};

class TcpRpcActive final : public Active {
 public:
  TcpRpcActive(const Spec& spec, const std::string& host, std::uint16_t port)
      : spec_(spec),
        use_(spec),
        socket_(TcpSocket::connect(host, port, false, spec.congestion)),
        records_(socket_, spec.size),
        call_(framed(rpc::encode_call(use_.procedure(), {}, {}, use_.arguments()))) {
    socket_.make_room();
  }

  Sample run(std::chrono::nanoseconds duration) override {
    Sample s;
    const auto begin = Clock::now();
    const auto end = begin + duration;
    for (std::uint32_t i = 0; i < spec_.depth; ++i) send(socket_, call_, ++xid_);
    for (std::uint32_t under_way = spec_.depth; under_way > 0;) {
      if (!use_.answered(results())) throw std::runtime_error("plain TCP: the other end has not done what was called");
      ++s.operations;
      if (Clock::now() < end) {
        send(socket_, call_, ++xid_);
      } else {
        --under_way;
      }
    }
    s.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    s.octets = s.operations * use_.payload();
    return s;
  }

  void verify() override {
    rpc::Octets call = framed(rpc::encode_call(use_.procedure(), {}, {}, use_.arguments(kSeed)));
    send(socket_, call, ++xid_);
    if (!use_.answered(results(), kSeed)) throw std::runtime_error("plain TCP: the data arrived damaged");
  }

 private:
  // Of the next Reply. They come in the order of the Calls.
  ConstBytes results() {
    const ConstBytes record = records_.next();
    if (record.empty()) throw Gone();
    const auto head = rpcrdma::RpcReply::parse(record);
    if (!head || !head->success() || head->xid != ++answered_)
      throw std::runtime_error("plain TCP: the other end has not done what was called");
    return record.subspan(head->results_offset);
  }

  Spec spec_;
  RpcUse use_;
  TcpSocket socket_;
  Records records_;
  rpc::Octets call_;
  std::uint32_t xid_ = 0, answered_ = 0;
};

class TcpRpcPassive final : public Passive {
 public:
  TcpRpcPassive(const Spec& spec, const std::string& host)
      : spec_(spec), program_(spec), listener_(TcpSocket::listen(host, spec.congestion)) {}

  [[nodiscard]] std::uint16_t port() const override { return listener_.local().port(); }

  void serve(const std::atomic<bool>& stop) override {
    while (!stop && !interrupted) {
      const TcpSocket socket = listener_.accept(false, &stop);
      if (!socket) continue;
      try {
        socket.make_room();
        converse(socket);
      } catch (const Gone&) {  // as soon as it has its last answer it may
      }
      return;
    }
  }

 private:
  void converse(const TcpSocket& socket) {
    Records records(socket, spec_.size);
    rpc::Octets same;  // a record
    for (;;) {
      const ConstBytes record = records.next();
      if (record.empty()) return;
      const auto head = rpcrdma::RpcCall::parse(record);
      if (!head) throw std::runtime_error("plain TCP: what came is no RPC Call");
      const ConstBytes arguments = record.subspan(head->arguments_offset);
      if (const auto* const ready = program_.same_each_time(head->procedure, arguments)) {
        if (same.empty()) same = framed(rpc::encode_reply(0, rpcrdma::AcceptStat::kSuccess, *ready));
        send(socket, same, head->xid);
        continue;
      }
      const auto results = program_.answer(head->procedure, arguments);
      rpc::Octets reply = framed(results ? rpc::encode_reply(0, rpcrdma::AcceptStat::kSuccess, *results)
                                         : rpc::encode_reply(0, rpcrdma::AcceptStat::kGarbageArgs, {}));
      send(socket, reply, head->xid);
    }
  }

  Spec spec_;
  RpcProgram program_;
  TcpSocket listener_;
};

}  // namespace

std::unique_ptr<Active> tcp_rpc_active(const Spec& spec, const std::string& host, std::uint16_t port) {
  return std::make_unique<TcpRpcActive>(spec, host, port);
}

std::unique_ptr<Passive> tcp_rpc_passive(const Spec& spec, const std::string& host) {
  return std::make_unique<TcpRpcPassive>(spec, host);
}

}  // namespace iwarp::tools::perf
