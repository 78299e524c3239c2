// Against a victim that connects over SCTP: what stands in the place of the answer to its Initiate, and behind it.
#include "tests/hostile/sctp_talk.h"

namespace iwarp::hostile::sctp {
namespace {

constexpr auto kControl = Session::kControlPpid;

// In place of the Accept.
template <class Wrong>
Reaction as_answer(Target& target, const Wrong& wrong, Flavour flavour = Flavour::kDefault) {
  Caught victim(target, {}, flavour);
  wrong(victim.session);
  return victim.verdict();
}
Reaction answered(Target& target, Function function, const Bytes& private_data, Flavour flavour = Flavour::kDefault) {
  return as_answer(
      target, [&](Session& s) { s.control(function, private_data); }, flavour);
}
// Behind it.
template <class Wrong>
Reaction in_session(Target& target, const Wrong& wrong) {
  Caught victim(target);
  victim.accept();
  wrong(victim.session);
  return victim.verdict();
}

Reaction indicating(Target& target, std::optional<std::uint32_t> indication) {
  Caught victim(target, {.indication = indication});
  return association_verdict(victim.peer);
}
Reaction without_indication(Target& target) {
  return indicating(target, std::nullopt);
}
Reaction other_indication(Target& target) {
  return indicating(target, 2);
}

// --- The answer

Reaction segment_as_answer(Target& target) {
  return as_answer(target, [](Session& s) { s.send(pattern(16)); });
}
Reaction initiate_as_answer(Target& target) {
  return answered(target, Function::kEnhancedInitiate, octets(polite()));
}
Reaction unknown_function_as_answer(Target& target) {
  return as_answer(target, [](Session& s) { s.message(kControl, {std::byte{0}, std::byte{8}}); });
}
Reaction foreign_ppid_as_answer(Target& target) {
  return as_answer(target, [](Session& s) { s.message(0, pattern(16)); });
}
Reaction ordered_accept(Target& target) {
  return as_answer(target, [](Session& s) {
    s.message(kControl, Bytes{std::byte{0}, std::byte{6}} | octets(polite()), {.ordered = true});
  });
}
Reaction plain_accept(Target& target) {
  return answered(target, Function::kAccept, {});
}
Reaction plain_reject(Target& target) {
  return answered(target, Function::kReject, {});
}
Reaction enhanced_accept_of_plain_initiate(Target& target) {
  return answered(target, Function::kEnhancedAccept, octets(polite()), Flavour::kPlain);
}
Reaction enhanced_reject_of_plain_initiate(Target& target) {
  return answered(target, Function::kEnhancedReject, octets(polite()), Flavour::kPlain);
}
Reaction enhanced_accept_without_data(Target& target) {
  return answered(target, Function::kEnhancedAccept, Bytes(3));
}
Reaction enhanced_reject_without_data(Target& target) {
  return answered(target, Function::kEnhancedReject, {});
}
Reaction enhanced_accept_513(Target& target) {
  return answered(target, Function::kEnhancedAccept, octets(polite()) | pattern(509));
}
Reaction enhanced_accept_512(Target& target) {
  return answered(target, Function::kEnhancedAccept, octets(polite()) | pattern(508));
}
Reaction accept_513(Target& target) {
  return answered(target, Function::kAccept, pattern(513), Flavour::kPlain);
}
Reaction ord_above_every_ird(Target& target) {
  enhanced::EnhancedData data = polite();
  data.ord = kDepth + 1;
  return answered(target, Function::kEnhancedAccept, octets(data));
}
Reaction no_rtr_named(Target& target) {
  enhanced::EnhancedData data = polite();
  data.peer_to_peer = true;
  return answered(target, Function::kEnhancedAccept, octets(data), Flavour::kPeerToPeer);
}

// --- Behind it

Reaction second_accept(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kEnhancedAccept, octets(polite())); });
}
Reaction reject_behind_accept(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kEnhancedReject, octets(polite())); });
}
Reaction initiate_behind_accept(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kInitiate); });
}
Reaction segment_behind_terminate(Target& target) {
  return in_session(target, [](Session& s) { s.control(Function::kTerminate); });  // verdict() sends one
}
Reaction segment_before_accept(Target& target) {
  Caught victim(target);
  const std::uint16_t accept = victim.session.take_ssn();
  victim.session.send(pattern(16));
  victim.session.control_at(accept, Function::kEnhancedAccept, octets(polite()));
  const Heard answer = victim.session.hear();
  if (answer.kind != Heard::Kind::kSend || answer.payload != pattern(16)) return "no answer to the early segment";
  return victim.verdict();
}
Reaction terminate_before_accept(Target& target) {
  return as_answer(target, [](Session& s) {
    const std::uint16_t accept = s.take_ssn();
    s.control(Function::kTerminate);
    s.control_at(accept, Function::kEnhancedAccept, octets(polite()));
  });
}
Reaction segment_behind_reject(Target& target) {
  return answered(target, Function::kReject, {}, Flavour::kPlain);  // verdict() sends one
}
Reaction segment_behind_enhanced_reject(Target& target) {
  return answered(target, Function::kEnhancedReject, octets(polite()));
}
Reaction segment_behind_terminate_in_answer(Target& target) {
  return answered(target, Function::kTerminate, {}, Flavour::kPlain);
}
// An initiator that has been answered so begins a plain session, maybe on the same stream: so the segment goes first.
Reaction segment_behind_terminate_of_enhanced(Target& target) {
  Caught victim(target);
  const std::uint16_t terminate = victim.session.take_ssn();
  victim.session.send(pattern(16));
  victim.session.control_at(terminate, Function::kTerminate);
  const auto initiate = victim.peer.take(
      [](const SctpPeer::Message& m) { return m.ppid == kControl && m.octets == test::hex("0000 0001"); }, 10s);
  if (!initiate) return "no plain Initiate";
  Session plain(victim.peer, initiate->stream, 1);
  plain.control(Function::kAccept);
  return plain.is_served() ? kIgnore : "the plain session is not served";
}

const Script kScripts[] = {
    {"without_indication", without_indication},
    {"other_indication", other_indication},
    {"segment_as_answer", segment_as_answer},
    {"initiate_as_answer", initiate_as_answer},
    {"unknown_function_as_answer", unknown_function_as_answer},
    {"foreign_ppid_as_answer", foreign_ppid_as_answer},
    {"ordered_accept", ordered_accept},
    {"plain_accept", plain_accept},
    {"plain_reject", plain_reject},
    {"enhanced_accept_of_plain_initiate", enhanced_accept_of_plain_initiate},
    {"enhanced_reject_of_plain_initiate", enhanced_reject_of_plain_initiate},
    {"enhanced_accept_without_data", enhanced_accept_without_data},
    {"enhanced_reject_without_data", enhanced_reject_without_data},
    {"enhanced_accept_513", enhanced_accept_513},
    {"enhanced_accept_512", enhanced_accept_512},
    {"accept_513", accept_513},
    {"ord_above_every_ird", ord_above_every_ird},
    {"no_rtr_named", no_rtr_named},
    {"second_accept", second_accept},
    {"reject_behind_accept", reject_behind_accept},
    {"initiate_behind_accept", initiate_behind_accept},
    {"segment_behind_terminate", segment_behind_terminate},
    {"segment_before_accept", segment_before_accept},
    {"terminate_before_accept", terminate_before_accept},
    {"segment_behind_reject", segment_behind_reject},
    {"segment_behind_enhanced_reject", segment_behind_enhanced_reject},
    {"segment_behind_terminate_in_answer", segment_behind_terminate_in_answer},
    {"segment_behind_terminate_of_enhanced", segment_behind_terminate_of_enhanced},
};

}  // namespace

std::span<const Script> initiator_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile::sctp
