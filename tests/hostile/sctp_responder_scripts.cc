// Against a victim that listens over SCTP: session control, the DDP-SSN and what is in the chunks (RFC 5043, RFC 6581
// s7).
#include "tests/hostile/sctp_talk.h"

namespace iwarp::hostile::sctp {
namespace {

constexpr auto kControl = Session::kControlPpid;
constexpr auto kSegment = Session::kSegmentPpid;

Bytes code(std::uint16_t function) {
  return {static_cast<std::byte>(function >> 8), static_cast<std::byte>(function & 0xFF)};
}

// A session in operation, then `wrong`.
template <class Wrong>
Reaction in_session(Target& target, const Wrong& wrong) {
  Association a(target);
  a.session.open();
  wrong(a.session);
  return a.verdict();
}
// In place of the Initiate.
template <class Wrong>
Reaction at_first(Target& target, const Wrong& wrong) {
  Association a(target);
  wrong(a.session);
  return a.verdict();
}
Reaction initiated(Target& target, Function function, const Bytes& private_data, Flavour flavour = Flavour::kDefault) {
  Association a(target, {}, flavour);
  a.session.control(function, private_data);
  const bool enhanced = iwarp::sctp::is_enhanced(function);
  return a.verdict(enhanced ? Function::kEnhancedAccept : Function::kAccept);
}

// --- Associations

Reaction indicating(Target& target, std::optional<std::uint32_t> indication) {
  SctpPeer peer(target.meanwhile);
  peer.connect(target.port(Flavour::kDefault), {.indication = indication});
  return association_verdict(peer);
}
Reaction without_indication(Target& target) {
  return indicating(target, std::nullopt);
}
Reaction other_indication(Target& target) {
  return indicating(target, 2);
}
Reaction fewer_streams_one_way(Target& target) {
  Association a(target, {.outbound = 3, .inbound = 64}, Flavour::kDefault, 2);
  a.session.open();
  return a.verdict();
}
Reaction stream_without_counterpart(Target& target) {
  Association a(target, {.outbound = 64, .inbound = 3}, Flavour::kDefault, 2);
  Session(a.peer, 3).control(Function::kInitiate);
  return association_verdict(a.peer);
}
Reaction shut_down_without_terminate(Target& target) {
  Association a(target);
  a.session.open();
  a.peer.shut_down();
  return association_verdict(a.peer);
}

// --- Chunks

Reaction foreign_ppid(Target& target) {
  return in_session(target, [](Session& s) { s.message(0, s.send_segment(pattern(16))); });
}
Reaction foreign_ppid_first(Target& target) {
  return at_first(target, [](Session& s) { s.message(46, pattern(16)); });
}
Reaction ordered_segment(Target& target) {
  return in_session(target, [](Session& s) { s.message(kSegment, s.send_segment(pattern(16)), {.ordered = true}); });
}
Reaction ordered_initiate(Target& target) {
  return at_first(target, [](Session& s) { s.message(kControl, code(1), {.ordered = true}); });
}
Reaction message_in_two_fragments(Target& target) {
  Association a(target);
  a.session.open();
  const Bytes segment = a.session.send_segment(pattern(600));
  const Bytes front(segment.begin(), segment.begin() + 100), back(segment.begin() + 100, segment.end());
  a.session.message(kSegment, front, {.ends = false});
  a.peer.send(a.session.stream(), kSegment, back, {.begins = false});
  const Heard answer = a.session.hear();
  if (answer.kind != Heard::Kind::kSend || answer.payload != pattern(600)) return "no answer to the fragmented message";
  return a.verdict();
}
Reaction one_octet(Target& target, std::uint32_t ppid) {
  Association a(target);
  a.session.open();
  a.peer.send(a.session.stream(), ppid, Bytes(1));
  return a.verdict();
}
Reaction segment_of_one_octet(Target& target) {
  return one_octet(target, kSegment);
}
Reaction control_of_one_octet(Target& target) {
  return one_octet(target, kControl);
}
Reaction segment_shorter_than_header(Target& target) {
  return in_session(target, [](Session& s) { s.message(kSegment, Bytes(5)); });
}

// --- The DDP-SSN

Reaction ssn_again(Target& target) {
  Association a(target);
  a.session.open();
  if (!a.session.is_served()) return "not served";
  a.session.message_at(2, kSegment, test::send_segment(pattern(16), {.msn = 2}));
  return a.verdict();
}
// Behind the Initiate 1 is due.
Reaction ssn_ahead(Target& target, std::uint16_t by) {
  return in_session(target, [&](Session& s) {
    s.message_at(static_cast<std::uint16_t>(1 + by), kSegment, test::send_segment(pattern(16), {.msn = 1}));
  });
}
Reaction ssn_5000_ahead(Target& target) {
  return ssn_ahead(target, 5000);
}
Reaction ssn_40000_ahead(Target& target) {
  return ssn_ahead(target, 40000);
}
Reaction segments_in_reverse(Target& target) {
  Association a(target);
  a.session.open();
  const std::uint16_t first = a.session.take_ssn(), second = a.session.take_ssn();
  const Bytes one = a.session.send_segment(pattern(16, 1)), two = a.session.send_segment(pattern(16, 2));
  a.session.message_at(second, kSegment, two);
  a.session.message_at(first, kSegment, one);
  for (unsigned i = 1; i <= 2; ++i) {
    const Heard answer = a.session.hear();
    if (answer.kind != Heard::Kind::kSend || answer.payload != pattern(16, i)) return "not delivered in order";
  }
  return a.verdict();
}

// --- Session control: form

Reaction control_without_function(Target& target) {
  return in_session(target, [](Session& s) { s.message(kControl, {}); });
}
Reaction control_of_three_octets(Target& target) {
  return at_first(target, [](Session& s) { s.message(kControl, Bytes(1)); });
}
Reaction unknown_function(Target& target) {
  return in_session(target, [](Session& s) { s.message(kControl, code(8)); });
}
Reaction unknown_function_first(Target& target) {
  return at_first(target, [](Session& s) { s.message(kControl, code(0xFFFF)); });
}
Reaction private_data_513(Target& target) {
  return initiated(target, Function::kInitiate, pattern(513));
}
Reaction private_data_512(Target& target) {
  return initiated(target, Function::kInitiate, pattern(512));
}
Reaction enhanced_private_data_513(Target& target) {
  return initiated(target, Function::kEnhancedInitiate, octets(polite()) | pattern(509));
}
Reaction enhanced_private_data_512(Target& target) {
  return initiated(target, Function::kEnhancedInitiate, octets(polite()) | pattern(508));
}
Reaction enhanced_initiate_without_data(Target& target) {
  return initiated(target, Function::kEnhancedInitiate, Bytes(3));
}
Reaction terminate_with_private_data(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kTerminate, pattern(8)); });
}

// --- Session control: sequence

Reaction segment_first(Target& target) {
  return at_first(target, [](Session& s) { s.send(pattern(16)); });
}
Reaction accept_first(Target& target) {
  return at_first(target, [](Session& s) { s.control(Function::kAccept); });
}
Reaction terminate_first(Target& target) {
  return at_first(target, [](Session& s) { s.control(Function::kTerminate); });
}
Reaction second_initiate(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kInitiate); });
}
Reaction second_enhanced_initiate(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kEnhancedInitiate, octets(polite())); });
}
Reaction accept_in_session(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kEnhancedAccept, octets(polite())); });
}
Reaction segment_behind_terminate(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kTerminate); });  // verdict() sends one
}
Reaction segment_before_initiate(Target& target) {
  return at_first(target, [](Session& s) {
    const std::uint16_t initiate = s.take_ssn();
    s.send(pattern(16));
    s.control_at(initiate, Function::kInitiate);
  });
}
Reaction terminate_before_initiate(Target& target) {
  return at_first(target, [](Session& s) {
    const std::uint16_t initiate = s.take_ssn();
    s.control(Function::kTerminate);
    s.control_at(initiate, Function::kInitiate);
  });
}
// Initiates as many as may wait for the application, then one more.
Reaction beyond_limit(Target& target, Function function) {
  Association a(target);
  const bool enhanced = iwarp::sctp::is_enhanced(function);
  constexpr std::uint16_t kMayWait = 32;
  for (std::uint16_t i = 1; i <= kMayWait; ++i) Session(a.peer, i).control(Function::kInitiate, text(kLeaveMe));
  a.session.control(function, enhanced ? octets(polite()) : Bytes{});
  a.session.send(pattern(16));
  return a.verdict(enhanced ? Function::kEnhancedAccept : Function::kAccept);
}
Reaction segment_behind_refused_initiate(Target& target) {
  return beyond_limit(target, Function::kInitiate);
}
Reaction segment_behind_refused_enhanced_initiate(Target& target) {
  return beyond_limit(target, Function::kEnhancedInitiate);
}
Reaction segment_behind_reject(Target& target, Function initiate, const Bytes& private_data, Function reject) {
  Association a(target);
  a.session.control(initiate, private_data);
  const Heard answer = a.session.hear();
  if (!answer.is(reject)) return "the Initiate was not rejected";
  a.session.send(pattern(16));
  // Not a word more.
  if (a.session.hear(300ms).kind != Heard::Kind::kSilence) return "more than the Reject";
  if (!a.neighbour.is_served()) return "another session of the association is not served";
  return reject == Function::kReject ? kReject : kEnhancedReject;
}
Reaction segment_behind_plain_reject(Target& target) {
  return segment_behind_reject(target, Function::kInitiate, text(kRejectMe), Function::kReject);
}
Reaction segment_behind_enhanced_reject(Target& target) {
  return segment_behind_reject(target, Function::kEnhancedInitiate, octets(polite()) | text(kRejectMe),
                               Function::kEnhancedReject);
}
Reaction only_send_rtr_offered(Target& target) {
  enhanced::EnhancedData data = polite();
  data.peer_to_peer = data.rtr_send = true;
  return initiated(target, Function::kEnhancedInitiate, octets(data));
}
Reaction enhanced_to_plain_responder(Target& target) {
  return initiated(target, Function::kEnhancedInitiate, octets(polite()), Flavour::kPlain);
}
Reaction stream_used_again(Target& target) {
  Association a(target);
  a.session.open();
  a.session.control(Function::kTerminate);
  if (!a.session.hear().is(Function::kTerminate)) return "the Terminate was not answered";
  a.session = Session(a.peer, a.session.stream());
  a.session.open();
  return a.verdict();
}

const Script kScripts[] = {
    {"without_indication", without_indication},
    {"other_indication", other_indication},
    {"fewer_streams_one_way", fewer_streams_one_way},
    {"stream_without_counterpart", stream_without_counterpart},
    {"shut_down_without_terminate", shut_down_without_terminate},
    {"foreign_ppid", foreign_ppid},
    {"foreign_ppid_first", foreign_ppid_first},
    {"ordered_segment", ordered_segment},
    {"ordered_initiate", ordered_initiate},
    {"message_in_two_fragments", message_in_two_fragments},
    {"segment_of_one_octet", segment_of_one_octet},
    {"control_of_one_octet", control_of_one_octet},
    {"segment_shorter_than_header", segment_shorter_than_header},
    {"ssn_again", ssn_again},
    {"ssn_5000_ahead", ssn_5000_ahead},
    {"ssn_40000_ahead", ssn_40000_ahead},
    {"segments_in_reverse", segments_in_reverse},
    {"control_without_function", control_without_function},
    {"control_of_three_octets", control_of_three_octets},
    {"unknown_function", unknown_function},
    {"unknown_function_first", unknown_function_first},
    {"private_data_513", private_data_513},
    {"private_data_512", private_data_512},
    {"enhanced_private_data_513", enhanced_private_data_513},
    {"enhanced_private_data_512", enhanced_private_data_512},
    {"enhanced_initiate_without_data", enhanced_initiate_without_data},
    {"terminate_with_private_data", terminate_with_private_data},
    {"segment_first", segment_first},
    {"accept_first", accept_first},
    {"terminate_first", terminate_first},
    {"second_initiate", second_initiate},
    {"second_enhanced_initiate", second_enhanced_initiate},
    {"accept_in_session", accept_in_session},
    {"segment_behind_terminate", segment_behind_terminate},
    {"segment_before_initiate", segment_before_initiate},
    {"terminate_before_initiate", terminate_before_initiate},
    {"segment_behind_refused_initiate", segment_behind_refused_initiate},
    {"segment_behind_refused_enhanced_initiate", segment_behind_refused_enhanced_initiate},
    {"segment_behind_plain_reject", segment_behind_plain_reject},
    {"segment_behind_enhanced_reject", segment_behind_enhanced_reject},
    {"only_send_rtr_offered", only_send_rtr_offered},
    {"enhanced_to_plain_responder", enhanced_to_plain_responder},
    {"stream_used_again", stream_used_again},
};

}  // namespace

std::span<const Script> responder_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile::sctp
