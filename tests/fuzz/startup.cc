// MPA startup (RFC 5044 s7.1, RFC 6581): Initiator and Responder under several policies, driven by frames with fuzzed
// fields, raw octets, decisions of the application, time and ends of TCP. Two chunkings of the stream give the same
// outcome; what is parsed survives being written; what a machine sends parses.
//
// Input: role and policy (Setup) | operations (Run::operation).
#include <string>

#include "iwarp/mpa/negotiation.h"
#include "tests/fuzz/check.h"
#include "tests/support/hex.h"

namespace iwarp::fuzz {
namespace {

using test::Bytes;

struct Setup {
  bool responder = false;
  mpa::Policy policy;

  explicit Setup(Script& in) {
    const std::uint8_t a = in.u8(), b = in.u8();
    responder = (a & 1) != 0;
    policy.revision = (a & 2) != 0 ? 1 : 2;
    policy.peer_to_peer = (a & 4) == 0;
    policy.rtr_write = (a & 8) == 0;
    policy.rtr_read = (a & 16) == 0;
    policy.allow_revision_1_fallback = (a & 32) == 0;
    policy.crc = static_cast<mpa::Policy::Crc>((a >> 6) % 3);
    policy.max_private_data_bytes = (b & 1) != 0 ? 16 : 512;
    policy.ird = (b & 2) != 0 ? in.u16() : 32;
    policy.ord = (b & 4) != 0 ? in.u16() : 32;
    policy.max_ird = (b & 8) != 0 ? in.u16() : 128;
    policy.rtr_send = (b & 16) != 0;
    policy.negotiate_depths = (b & 32) == 0;
  }
};

// Parse, write, parse gives the same frame.
void check_stable(ConstBytes bytes, mpa::StartupParse (*parse)(ConstBytes, std::size_t)) {
  const auto result = parse(bytes, mpa::kMaxPrivateDataBytes);
  if (const auto* more = std::get_if<mpa::NeedMore>(&result)) FUZZ_CHECK(more->at_least > bytes.size());
  const auto* parsed = std::get_if<mpa::StartupFrame::Parsed>(&result);
  if (parsed == nullptr) return;
  FUZZ_CHECK(parsed->bytes <= bytes.size() && parsed->frame.size() == parsed->bytes);
  Bytes written(parsed->bytes);
  parsed->frame.write_to(written);
  const auto again = parse(written, mpa::kMaxPrivateDataBytes);
  const auto* twice = std::get_if<mpa::StartupFrame::Parsed>(&again);
  FUZZ_CHECK(twice != nullptr && twice->bytes == written.size() && twice->frame.reserved_bits == 0);
  Bytes rewritten(twice->bytes);
  twice->frame.write_to(rewritten);
  FUZZ_CHECK(rewritten == written);
}

// A frame with a good Key, good lengths, and everything else the fuzzer's.
Bytes made_frame(Script& in, bool reply) {
  const std::uint8_t shape = in.u8(), model = in.u8();
  mpa::StartupFrame f;
  f.is_reply = reply != ((shape & 1) != 0);
  f.enhanced = (shape & 2) == 0;
  f.markers = (shape & 4) != 0;
  f.reject = (shape & 8) != 0;
  f.crc = (shape & 16) != 0;
  f.revision = f.enhanced ? 2 : 1;
  f.enhanced_data = {(model & 1) != 0, (model & 2) != 0, (model & 4) != 0, (model & 8) != 0, 32, 32};
  if ((model & 16) != 0) f.enhanced_data.ird = in.u16() & 0x3FFF;
  if ((model & 32) != 0) f.enhanced_data.ord = in.u16() & 0x3FFF;
  f.private_data = in.bytes(in.u8());
  Bytes out(f.size());
  f.write_to(out);
  if ((shape & 32) != 0) out[16] ^= std::byte{in.u8()};
  if ((shape & 64) != 0) out[17] = std::byte{in.u8()};
  if ((shape & 128) != 0) out[19] = std::byte{in.u8()};
  return out;
}

// What an application sees of a machine.
struct Outcome {
  std::string events;
  Bytes sent;
  std::size_t consumed = 0;  // of the stream, unless startup failed
  int state = 0;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void print(const Outcome& o) {
  std::fprintf(stderr, "state %d, consumed %zu, sent %zu\n%s", o.state, o.consumed, o.sent.size(), o.events.c_str());
}

std::string text(ConstBytes private_data) {
  return " private " + test::to_hex(private_data) + "\n";
}
std::string text(const mpa::Established& e) {
  return "established " + e.negotiated.to_string() + " rtr " + std::to_string(static_cast<int>(e.rtr_to_send)) +
         text(e.private_data);
}
std::string text(const mpa::Rejected& r) {
  return "rejected " + (r.enhanced ? std::to_string(r.enhanced->ird) + "/" + std::to_string(r.enhanced->ord) : "") +
         text(r.private_data);
}
std::string text(const mpa::Failed& f) {
  FUZZ_CHECK(f.negotiated.has_value() == f.error.tell_peer.has_value());
  return std::string("failed ") + name(f.error.code) +
         (f.fallback == mpa::Fallback::kPeerToPeer  ? " try peer-to-peer\n"
          : f.fallback == mpa::Fallback::kRevision1 ? " try revision 1\n"
                                                    : "\n");
}
std::string text(const mpa::RequestReceived& r) {
  return "request " + r.request.to_string() + text(r.private_data);
}

template <class Machine>
class Run {
 public:
  Run(Machine machine, Chunking chunking) : machine_(std::move(machine)), chunking_(chunking) { after_input(); }

  Outcome all(Script script) {
    while (!script.done()) operation(script);
    if (failed_) out_.consumed = 0;  // a wrong octet may be noticed before or after its neighbours were taken
    out_.state = static_cast<int>(machine_.state());
    return std::move(out_);
  }

 private:
  static constexpr bool kResponder = std::is_same_v<Machine, mpa::Responder>;

  void operation(Script& in) {
    switch (in.u8() % 7) {
      case 0:
        receive(in.bytes(in.u8()));
        break;
      case 1:
        receive(made_frame(in, !kResponder));
        break;
      case 2: {
        const std::size_t n = in.u8();
        const ConstBytes tx = machine_.tx_bytes();
        const ConstBytes part = tx.first(n == 255 ? tx.size() : std::min(n, tx.size()));
        out_.sent.insert(out_.sent.end(), part.begin(), part.end());
        machine_.tx_commit(part.size());
        break;
      }
      case 3:
        decide(in);
        break;
      case 4:
        machine_.rx_end(in.flag());
        break;
      case 5:
        now_ += std::chrono::milliseconds(in.u8() * 100);
        machine_.on_deadline(now_);
        break;
      case 6: {
        Machine moved = std::move(machine_);
        machine_ = std::move(moved);
        break;
      }
    }
    after_input();
  }

  void receive(ConstBytes bytes) {
    check_stable(bytes, mpa::parse_request);
    check_stable(bytes, mpa::parse_reply);
    while (!bytes.empty()) {
      const ConstBytes piece = bytes.first(chunking_.next(bytes.size()));
      const Bytes own(piece.begin(), piece.end());  // gone when rx() returns
      const std::size_t n = machine_.rx(own, now_);
      FUZZ_CHECK(n <= own.size() && machine_.is_consistent());
      out_.consumed += n;
      // Octets behind a frame reach the Responder only if they come with it or it is still there to judge them.
      if (n == 0) break;
      bytes = bytes.subspan(n);
    }
  }

  void decide(Script& in) {
    if constexpr (kResponder) {
      const std::uint8_t how = in.u8();
      const std::uint16_t ird = (how & 2) != 0 ? in.u16() : 32, ord = (how & 4) != 0 ? in.u16() : 32;
      const ConstBytes private_data = in.bytes(in.u8());
      const auto result = (how & 1) != 0   ? machine_.reject(private_data)
                          : (how & 8) != 0 ? machine_.reject(private_data, ord)
                                           : machine_.accept(ird, ord, private_data);
      if (result.ok()) check_stable(machine_.tx_bytes(), mpa::parse_reply);
    }
  }

  void after_input() {
    FUZZ_CHECK(machine_.is_consistent());
    std::string events;
    while (const auto event = machine_.poll_event()) {
      if (std::holds_alternative<mpa::Failed>(*event)) {
        FUZZ_CHECK(!failed_);
        failed_ = true;
        events.clear();  // a Request with octets behind it may or may not have been told before they were seen
      }
      std::visit([&](const auto& e) { events += text(e); }, *event);
    }
    FUZZ_CHECK(machine_.is_consistent());
    out_.events += events;
  }

  Machine machine_;
  Chunking chunking_;
  TimePoint now_{std::chrono::seconds(1000)};
  bool failed_ = false;
  Outcome out_;
};

template <class Make>
void compare(const Make& make, const Script& script) {
  const Outcome whole = Run(make(), Chunking::whole()).all(script);
  const Outcome pieces = Run(make(), Chunking::pieces()).all(script);
  if (pieces == whole) return;
  print(whole);
  print(pieces);
  FUZZ_CHECK(pieces == whole);
}

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp;
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  const Setup setup(script);
  const TimePoint start{std::chrono::seconds(1000)};
  if (setup.responder) {
    compare([&] { return mpa::Responder(setup.policy, start); }, script);
  } else {
    const ConstBytes private_data = script.bytes(script.u8());
    compare([&] { return mpa::Initiator(setup.policy, private_data, start); }, script);
  }
  return 0;
}
