#include "tests/programs/generator.h"

#include <algorithm>

#include "tests/programs/make_setup.h"
#include "tests/programs/model.h"
#include "tests/programs/random.h"

namespace iwarp::programs {
namespace {

using rdmap::SendOp;

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : r_(seed), model_(make_setup(r_)) {
    program_.seed = seed;
    program_.setup = model_.setup();
  }

  Program make() {
    for (std::uint32_t n = r_.below(8); n > 0; --n) random_step();
    for (std::uint8_t pair = 0; pair < setup().pairs; ++pair) {
      (void)emit({.what = Do::kConnect, .qp = static_cast<std::uint8_t>(pair * kHosts)});
      if (r_.once_in(2)) random_step();
    }
    if (!r_.once_in(4)) settle();
    const std::uint32_t length = 20 + r_.below(r_.once_in(4) ? 400 : 120);
    std::array<std::uint32_t, kMostPairs> end_at{};
    for (auto& at : end_at) at = length - r_.below(length / 2 + 1);
    for (std::uint32_t i = 0; i < length; ++i) {
      random_step();
      for (std::size_t pair = 0; pair < setup().pairs; ++pair) {
        if (i + 1 == end_at[pair] && !r_.once_in(10)) end(pair);
      }
    }
    settle();
    for (std::uint32_t n = r_.below(6); n > 0; --n) random_step();
    settle();
    return std::move(program_);
  }

 private:
  [[nodiscard]] const Setup& setup() const { return model_.setup(); }
  [[nodiscard]] std::uint8_t any_qp() { return static_cast<std::uint8_t>(r_.below(setup().pairs * kHosts)); }
  [[nodiscard]] const HostSetup& host(std::size_t qp) const { return setup().hosts[host_of(qp)]; }

  // Whether it is legal; then it is part of the program.
  bool emit(Step s);
  void settle();
  void random_step();
  void end(std::size_t pair);
  [[nodiscard]] Step any_step();
  bool trespass(std::uint8_t qp);
  [[nodiscard]] Step receive(std::uint8_t qp);
  [[nodiscard]] Step post(std::uint8_t qp);
  void operands(Step& s);
  [[nodiscard]] Step move();
  [[nodiscard]] std::uint32_t some_length();
  [[nodiscard]] std::vector<Piece> pieces(std::uint32_t total, std::size_t most, std::uint32_t usual);
  [[nodiscard]] Piece read_source(std::uint8_t qp);
  [[nodiscard]] Piece piece(std::uint32_t region, std::uint32_t length);

  Random r_;
  Model model_;
  Program program_;
  std::uint32_t time_ = 0;  // ms
};

bool Generator::emit(Step s) {
  if (!model_.legal(s)) return false;
  const bool request = s.what == Do::kReceive || s.what == Do::kPost || s.what == Do::kDrain || s.what == Do::kTrespass;
  if (request && model_.may_be_full(s)) {
    if (!r_.once_in(20)) return false;
  } else {
    model_.apply(s);
  }
  program_.steps.push_back(std::move(s));
  return true;
}

void Generator::settle() {
  program_.steps.push_back({.what = Do::kSettle});
  model_.assume_settled();
}

void Generator::random_step() {
  if (r_.once_in(20)) return settle();
  for (int attempt = 0; attempt < 12; ++attempt) {
    if (emit(any_step())) return;
  }
}

void Generator::end(std::size_t pair) {
  const auto qp = static_cast<std::uint8_t>(pair * kHosts + r_.below(kHosts));
  const auto peer = static_cast<std::uint8_t>(peer_of(qp));
  const std::uint32_t kind = r_.below(20);
  for (int attempt = 0; attempt < 100 && model_.stands_still(qp); ++attempt) {
    if (attempt % 20 == 10) settle();
    (void)emit(receive(model_.waits(qp) ? qp : peer));
  }
  if (kind < 3 && trespass(qp)) {
    // What else may happen before the peer notices is below.
  } else if (kind < 12) {
    (void)emit({.what = Do::kDisconnect, .qp = qp});
  } else if (kind < 15) {
    if (r_.once_in(2)) settle();
    (void)emit({.what = Do::kLeave, .qp = qp});
  } else if (kind < 18) {
    (void)emit({.what = Do::kAbort, .qp = qp, .more = r_.below(3)});
  } else {
    (void)emit({.what = Do::kLose, .qp = qp, .amount = r_.below(3)});
  }
  for (std::uint32_t n = r_.below(8); n > 0; --n) random_step();
  if (!r_.once_in(3)) return;
  const std::uint8_t other = r_.once_in(2) ? qp : peer;
  switch (r_.below(4)) {
    case 0:
    case 1:
      (void)emit({.what = Do::kDisconnect, .qp = other});
      break;
    case 2:
      (void)emit({.what = Do::kAbort, .qp = other, .more = r_.below(3)});
      break;
    default:
      (void)emit({.what = Do::kLose, .qp = other, .amount = r_.below(3)});
  }
}

// Through an STag that was revoked.
bool Generator::trespass(std::uint8_t qp) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    Step s{.what = Do::kTrespass, .qp = qp, .op = r_.among({SendOp::kWrite, SendOp::kRead, SendOp::kFetchAdd})};
    s.signaled = !r_.once_in(3);
    s.pieces = {piece(r_.below(kReadOnly), is_atomic(s.op) ? 8 : 1 + some_length())};
    s.remote = piece(1 + r_.below(kRegions - 1), s.length());
    s.atomic = {r_.next(), 0, 0, 0};
    if (emit(s)) return true;
  }
  return false;
}

Step Generator::any_step() {
  const std::uint8_t qp = any_qp();
  const std::uint32_t kind = r_.below(100);
  if (kind < 50)
    return model_.receives_waiting(peer_of(qp)) < 2 && r_.once_in(2) ? receive(static_cast<std::uint8_t>(peer_of(qp)))
                                                                     : post(qp);
  if (kind < 58) return receive(qp);
  if (kind < 77) return move();
  if (kind < 84) return {.what = Do::kPoll, .qp = qp, .amount = 1 + r_.below(8), .more = r_.below(2)};
  if (kind < 88) {
    const Piece p = r_.once_in(2) ? read_source(qp) : piece(r_.below(kRegions - 1), some_length());
    return {.what = Do::kFill, .qp = qp, .pieces = {p}, .seed = 100 + r_.below(1U << 30)};
  }
  if (kind < 91) {
    return {.what = Do::kRereg,
            .qp = qp,
            .region = static_cast<std::uint8_t>(r_.below(kReadOnly)),
            .amount = r_.below(512)};
  }
  switch (kind) {
    case 91:
      return {.what = Do::kInvalidate, .qp = qp, .region = static_cast<std::uint8_t>(r_.below(kReadOnly))};
    case 92:
      return {.what = Do::kDrain, .qp = qp};
    case 93: {
      const std::uint32_t ms = time_ > 2000 ? 0 : r_.below(60);
      time_ += ms;
      return {.what = Do::kTime, .qp = qp, .amount = ms};
    }
    case 94:
      return {.what = Do::kEmss, .qp = qp, .amount = 128 + r_.below(9000)};
    case 95:
      return {.what = Do::kArm, .qp = qp, .solicited = r_.once_in(2), .more = r_.below(2)};
    case 96:
    case 97:
      return {.what = Do::kSrqLimit, .qp = qp, .amount = r_.below(host(qp).srq_depth + 1)};
    case 98:
      return {.what = Do::kResize, .qp = qp, .amount = 2000 + r_.below(2000), .more = r_.below(2)};
    default:
      return {.what = Do::kEvents, .qp = qp};
  }
}

// Of a Read of the peer that may be under way; nothing: there is none.
Piece Generator::read_source(std::uint8_t qp) {
  for (std::uint8_t i = 0; i < kReadOnly; ++i) {
    for (const Use& u : model_.memory().region(qp, i).uses) {
      if (u.kind != Use::Kind::kRemoteRead) continue;
      const std::uint32_t length = 1 + r_.below(u.end - u.begin);
      return {i, u.begin + r_.below(u.end - u.begin - length + 1), length};
    }
  }
  return {};
}

Step Generator::move() {
  Step s{.what = Do::kMove, .qp = any_qp()};
  const auto some = [&] { return r_.once_in(3) ? ~std::uint32_t{0} : r_.below(r_.among({40U, 300U, 3000U, 70000U})); };
  s.amount = some();
  s.more = some();
  s.cut = r_.among({0U, 0U, 1U, 5U, 60U, 1000U, 20000U});
  s.seed = r_.below(1000);
  return s;
}

std::uint32_t Generator::some_length() {
  const std::uint32_t size = setup().region_bytes;
  const std::uint32_t longest =
      r_.once_in(4) ? size / 2 : std::min(r_.among({1U, 9U, 33U, 300U, 1500U, 3000U}), size / 2);
  return r_.once_in(8) ? 0 : r_.below(longest + 1);
}

Piece Generator::piece(std::uint32_t region, std::uint32_t length) {
  const std::uint32_t size = setup().region_bytes;
  length = std::min(length, size);
  return {static_cast<std::uint8_t>(region), r_.below(size - length + 1), length};
}

// Mostly of one region, as an application would have it.
std::vector<Piece> Generator::pieces(std::uint32_t total, std::size_t most, std::uint32_t usual) {
  std::vector<Piece> out;
  if (total == 0 && r_.once_in(2)) return out;
  const std::size_t count = r_.once_in(2) ? 1 : 1 + r_.below(most);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t length = i + 1 == count ? total : r_.below(total + 1);
    total -= length;
    out.push_back(piece(r_.once_in(4) ? r_.below(kRegions) : usual, length));
  }
  return out;
}

Step Generator::receive(std::uint8_t qp) {
  const std::uint32_t length = std::max(some_length(), static_cast<std::uint32_t>(model_.needed(qp)));
  return {.what = Do::kReceive, .qp = qp, .pieces = pieces(length, rdmap::kMaxSge, kPrivate)};
}

Step Generator::post(std::uint8_t qp) {
  Step s{.what = Do::kPost, .qp = qp};
  s.op = r_.among({SendOp::kSend, SendOp::kSend, SendOp::kSend, SendOp::kSendInvalidate, SendOp::kWrite, SendOp::kWrite,
                   SendOp::kWrite, SendOp::kRead, SendOp::kRead, SendOp::kReadInvalidate, SendOp::kLocalInvalidate,
                   SendOp::kImmediate, SendOp::kWriteImmediate, SendOp::kFetchAdd, SendOp::kCmpSwap});
  s.signaled = !r_.once_in(3);
  s.fence = r_.once_in(5);
  s.solicited = (s.op <= SendOp::kSendInvalidate || s.op == SendOp::kImmediate || s.op == SendOp::kWriteImmediate) &&
                r_.once_in(3);
  s.with_next = r_.once_in(5);
  s.seed = r_.below(1000);
  operands(s);
  return s;
}

void Generator::operands(Step& s) {
  std::uint32_t length = some_length();
  s.immediate = r_.next();
  switch (s.op) {
    case SendOp::kSend:
    case SendOp::kSendInvalidate: {
      const auto room = model_.room(s.qp);
      length = std::min<std::uint32_t>(length, room ? static_cast<std::uint32_t>(*room) : 0);
      if (room && r_.once_in(3)) length = static_cast<std::uint32_t>(*room);
      s.pieces = pieces(length, rdmap::kMaxSge, r_.among({0U, 1U, 5U}));
      s.region = r_.once_in(2) ? kRevocable : kRevocableToo;
      break;
    }
    case SendOp::kWrite:
    case SendOp::kWriteImmediate:
      s.pieces = pieces(length, rdmap::kMaxSge, r_.among({0U, 1U, 5U}));
      break;
    case SendOp::kRead:
      s.pieces = pieces(length, rdmap::kMaxSge, r_.among({0U, 2U}));
      break;
    case SendOp::kReadInvalidate:
      s.pieces = {piece(2 + r_.below(3), length)};
      break;
    case SendOp::kLocalInvalidate:
      s.region = static_cast<std::uint8_t>(r_.below(kReadOnly));
      break;
    case SendOp::kImmediate:
    case SendOp::kSendImmediate:  // not of these programs
      break;
    case SendOp::kFetchAdd:
    case SendOp::kCmpSwap:
      s.pieces = {piece(r_.among({0U, 2U, 1U}), 8)};
      break;
  }
  s.inlined = may_be_inline(s.op) && s.length() <= host(s.qp).max_inline && r_.once_in(3);
  const std::uint32_t size = setup().region_bytes;
  s.remote = piece(1 + r_.below(kRegions - 1), s.length());
  if (!is_atomic(s.op)) return;
  s.remote.offset = std::min(s.remote.offset, size - 8) / 8 * 8;
  const std::uint32_t target = r_.below(4);  // few places, so that Atomics meet
  if (target != 0) s.remote.offset = target * 8;
  const auto mask = [&] {
    return r_.among({std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x8000800080008000}, r_.next()});
  };
  s.atomic = {r_.next(), mask(), r_.next(), mask()};
  if (r_.once_in(2)) {
    std::uint64_t is = 0;
    const Bytes there = model_.memory().read(peer_of(s.qp), {Piece{s.remote.region, s.remote.offset, 8}});
    std::copy(there.begin(), there.end(), reinterpret_cast<std::byte*>(&is));
    s.atomic.compare = is;
  }
}

}  // namespace

Program generate(std::uint64_t seed) {
  return Generator(seed).make();
}

}  // namespace iwarp::programs
