// The sessions of an SCTP association (RFC 5043 s6, RFC 6581 s7): any messages on its streams, with DDP-SSNs near the
// one that is due, in any order with calls of the application, acknowledgements, time and loss. Each session tells of a
// start and an end at most once and of segments only in between, has no two control messages under way, and what it
// sends parses; early messages keep to their budget, and nothing is kept in the end. Segments that are early are placed
// by half of the runs: they are delivered as such, in the order of their positions.
//
// Input: which end, budget (Run) | operations (Run::operation).
#include "iwarp/sctp/association.h"

#include <map>
#include <vector>

#include "tests/fuzz/check.h"

namespace iwarp::fuzz {
namespace {

using sctp::Association;
using sctp::Session;
using sctp::StreamId;

constexpr std::uint16_t kStreams = 4;

class Run {
 public:
  explicit Run(Script& in) : Run(in.u8(), in.u8()) {}

  void all(Script& in) {
    while (!in.done()) {
      operation(in);
      after_input();
    }
    association_.lost(make_error(Errc::kConnectionLost));
    after_input();
    FUZZ_CHECK(association_.idle() && association_.budget().held() == 0);
  }

 private:
  // What one session has told so far.
  struct Told {
    bool established = false, ended = false;
    std::map<std::uint64_t, std::size_t> placed{};  // early segments that were placed: position, octets
  };

  Run(std::uint8_t flags, std::uint8_t budget)
      : association_(options(flags, budget),
                     (flags & 1) != 0 ? Association::Side::kAccepted : Association::Side::kConnected),
        places_((flags & 64) != 0) {
    FUZZ_CHECK(association_.up(sctp::kDdpIndication, kStreams, kStreams).ok());
  }
  static sctp::AssociationOptions options(std::uint8_t flags, std::uint8_t budget) {
    sctp::AssociationOptions o;
    o.hold_bytes = std::size_t{budget} * 64;
    o.max_deciding = (flags & 2) != 0 ? 1 : 3;
    o.session.enhanced = (flags & 4) == 0;
    o.session.offer.forms = {.send = (flags & 8) != 0, .write = true, .read = (flags & 16) == 0};
    o.session.max_private_data_bytes = (flags & 32) != 0 ? 16 : 512;
    return o;
  }

  void operation(Script& in) {
    const std::uint8_t what = in.u8();
    const StreamId stream{static_cast<std::uint16_t>(what / 16 % kStreams)};
    switch (what % 16) {
      case 0:
      case 1:
        receive(stream, sctp::Ppid::kDdpSegment, in, {});
        break;
      case 2:
      case 3:
      case 4: {
        const std::uint8_t code = in.u8();
        receive(stream, sctp::Ppid::kSessionControl, in, std::vector<std::byte>{std::byte{0}, std::byte{code}});
        break;
      }
      case 5: {
        const std::uint32_t ppid = in.u8();
        const ConstBytes octets = in.bytes(in.u8());
        const std::vector<std::byte> own(octets.begin(), octets.end());
        give(stream, {ppid, in.flag(), own});
        break;
      }
      case 6: {
        sctp::SessionOptions o;
        const std::uint8_t flags = in.u8();
        o.enhanced = (flags & 1) == 0;
        o.offer.peer_to_peer = (flags & 2) != 0;
        o.offer.max_ird = (flags & 4) != 0 ? 0 : 128;
        const auto opened = association_.open(o, in.bytes(in.u8()), now_);
        if (opened) told_[sctp::raw(*opened)] = {};
        break;
      }
      case 7: {
        const ConstBytes data = in.bytes(in.u8());
        (void)association_.accept(stream, {in.u8(), in.u8()}, data);
        break;
      }
      case 8:
        (void)association_.reject(stream, in.bytes(in.u8()),
                                  in.flag() ? std::optional<std::uint16_t>(7) : std::nullopt);
        break;
      case 9:
        association_.terminate(stream);
        break;
      case 10:
        association_.arrived(stream, in.u8());
        break;
      case 11:
        association_.all_arrived();
        break;
      case 12: {
        const Session* s = association_.find(stream);
        if (s != nullptr && s->may_send_segment()) association_.segment_taken(stream);
        break;
      }
      case 13:
        now_ += std::chrono::seconds(in.u8());
        association_.on_deadline(now_);
        break;
      case 14:
        take_ = !take_;  // SCTP takes nothing for a while
        break;
      case 15:
        if (in.u8() == 255) {
          association_.lost(make_error(Errc::kConnectionLost));
          FUZZ_CHECK(association_.up(sctp::kDdpIndication, kStreams, kStreams).ok());
        }
        break;
    }
  }

  // A message with a DDP-SSN so far from the next one of a peer that has begun at 0.
  void receive(StreamId stream, sctp::Ppid ppid, Script& in, std::vector<std::byte> front) {
    const std::uint8_t from_next = in.u8();
    std::uint16_t& next = next_[sctp::raw(stream)];
    if (from_next == 0x80) next = 0;
    std::vector<std::byte> message(sctp::kSsnBytes);
    sctp::write_ssn(sctp::DdpSsn{static_cast<std::uint16_t>(next + static_cast<std::int8_t>(from_next % 0x80))},
                    message);
    if (from_next == 0 || from_next == 0x80) ++next;
    message.insert(message.end(), front.begin(), front.end());
    const ConstBytes body = in.bytes(in.u8());
    message.insert(message.end(), body.begin(), body.end());
    give(stream, {static_cast<std::uint32_t>(ppid), false, message});
  }

  void give(StreamId stream, sctp::Message message) {
    if (const auto early = association_.early(stream, message)) {
      Told& told = told_[sctp::raw(stream)];
      FUZZ_CHECK(told.established && !told.ended);
      FUZZ_CHECK(early->segment.size() + sctp::kSsnBytes == message.bytes.size());
      if (places_ && !early->segment.empty()) {
        message.placed = 1 + early->segment.size() / 2;
        message.bytes = message.bytes.first(message.bytes.size() - message.placed);
        FUZZ_CHECK(told.placed.emplace(early->position, message.placed).second);
      }
    }
    FUZZ_CHECK(association_.receive(stream, message).ok());
    drain();
  }

  void drain() {
    while (const auto event = association_.poll_event()) {
      Told& told = told_[sctp::raw(event->stream)];
      if (std::holds_alternative<Session::Requested>(event->what)) {
        told = {};
        continue;
      }
      // A passive session that never got an Initiate ends without having begun.
      const auto* ended = std::get_if<Session::Ended>(&event->what);
      if (ended != nullptr && told.ended) told = {};
      FUZZ_CHECK(!told.ended);
      if (std::holds_alternative<Session::Established>(event->what)) {
        FUZZ_CHECK(!told.established);
        told.established = true;
      } else if (const auto* delivered = std::get_if<Session::Delivered>(&event->what)) {
        FUZZ_CHECK(told.established);
        if (delivered->placed == 0) continue;
        FUZZ_CHECK(!told.placed.empty() && told.placed.begin()->second == delivered->placed);
        told.placed.erase(told.placed.begin());
      } else {
        told.ended = true;
      }
    }
  }

  void after_input() {
    drain();
    while (take_) {
      const auto control = association_.control();
      if (!control) break;
      const std::vector<std::byte> octets(control->message.begin(), control->message.end());
      const auto m = sctp::SessionControl::parse(octets);
      const Session* s = association_.find(control->stream);
      FUZZ_CHECK(m.ok() && m->size() == octets.size() && m->ssn == s->next_ssn());
      FUZZ_CHECK(s->under_way() < sctp::SsnSource::kMaxUnderWay);
      association_.control_taken(control->stream);
      drain();
    }
    for (std::uint16_t id = 0; id < kStreams; ++id) {
      const Session* s = association_.find(StreamId{id});
      FUZZ_CHECK(s == nullptr || s->is_consistent());
    }
    FUZZ_CHECK(association_.budget().held() <= association_.budget().limit());
    if (const auto at = association_.deadline()) FUZZ_CHECK(*at > now_ || !association_.idle());
  }

  Association association_;
  TimePoint now_{std::chrono::seconds(1000)};
  bool places_;
  bool take_ = true;
  std::map<std::uint16_t, Told> told_;
  std::map<std::uint16_t, std::uint16_t> next_;
};

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  iwarp::fuzz::Script script(iwarp::fuzz::as_input(data, size));
  iwarp::fuzz::Run(script).all(script);
  return 0;
}
