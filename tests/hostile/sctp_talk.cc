#include "tests/hostile/sctp_talk.h"

#include <algorithm>

#include "iwarp/rdmap/terminate_message.h"

namespace iwarp::hostile::sctp {

using Kind = Heard::Kind;
using iwarp::sctp::SessionControl;

Bytes text(std::string_view words) {
  const auto octets = std::as_bytes(std::span(words.data(), words.size()));
  return {octets.begin(), octets.end()};
}

enhanced::EnhancedData polite() {
  enhanced::EnhancedData data;
  data.ird = data.ord = kDepth;
  return data;
}

Bytes octets(const enhanced::EnhancedData& data) {
  Bytes out(enhanced::kEnhancedDataBytes);
  data.write_to(std::span<std::byte, enhanced::kEnhancedDataBytes>(out));
  return out;
}

namespace {

Bytes be16(std::uint16_t value) {
  Bytes out(2);
  store_be<std::uint16_t>(out, value);
  return out;
}

// Without its DDP-SSN. A Send, or a Terminate of RDMAP: the victim has no reason for others.
Heard read_segment(const Bytes& segment) {
  const auto header = ddp::parse_segment_header(segment);
  if (!header || std::holds_alternative<ddp::TaggedHeader>(*header)) return {Kind::kUnreadable};
  const auto opcode = rdmap::check_control(*header);
  const Bytes payload(segment.begin() + static_cast<std::ptrdiff_t>(ddp::header_size(*header)), segment.end());
  Heard heard{Kind::kSend};
  heard.payload = payload;
  if (opcode && *opcode == rdmap::Opcode::kSend) return heard;
  const auto terminate = rdmap::TerminateMessage::parse(payload);
  if (!opcode || *opcode != rdmap::Opcode::kTerminate || !terminate) return {Kind::kUnreadable};
  heard.kind = Kind::kTerminate;
  heard.code = terminate->code;
  return heard;
}

// A word for what is no reaction that the vocabulary has.
Reaction strange(const Heard& heard) {
  switch (heard.kind) {
    case Kind::kControl:
      return std::string("session control: ") + iwarp::sctp::name(heard.function);
    case Kind::kSend:
      return "a Send";
    case Kind::kTerminate:
      return term(heard.code) + ", but the session goes on";
    case Kind::kUnreadable:
      return "unreadable octets";
    case Kind::kAborted:
      return kAssociationAborted;
    case Kind::kShutDown:
      return kClose;
    case Kind::kSilence:
      return "silence";
  }
  return "?";
}

}  // namespace

void Session::message_at(std::uint16_t ssn, std::uint32_t ppid, const Bytes& rest, SctpPeer::Chunk how) {
  peer_->send(stream_, ppid, be16(ssn) | rest, how);
}

void Session::control_at(std::uint16_t ssn, Function function, const Bytes& private_data) {
  message_at(ssn, kControlPpid, be16(static_cast<std::uint16_t>(function)) | private_data);
}

void Session::open(Function function) {
  const bool enhanced = iwarp::sctp::is_enhanced(function);
  control(function, enhanced ? octets(polite()) : Bytes{});
  const Heard answer = hear();
  if (!answer.is(enhanced ? Function::kEnhancedAccept : Function::kAccept))
    throw std::runtime_error("the victim did not accept an Initiate: " + strange(answer));
}

Heard Session::hear(std::chrono::milliseconds limit) {
  const auto message = peer_->take(
      [this](const SctpPeer::Message& m) {
        return m.stream == stream_ && m.octets.size() >= 2 && load_be<std::uint16_t>(m.octets) == due_;
      },
      limit);
  if (!message) {
    const SctpPeer::End end = peer_->end(0ms);
    return {end == SctpPeer::End::kAborted    ? Kind::kAborted
            : end == SctpPeer::End::kShutDown ? Kind::kShutDown
                                              : Kind::kSilence};
  }
  ++due_;
  if (message->ordered) return {Kind::kUnreadable};
  if (message->ppid == kSegmentPpid) return read_segment({message->octets.begin() + 2, message->octets.end()});
  const auto control = SessionControl::parse(message->octets);
  if (message->ppid != kControlPpid || !control) return {Kind::kUnreadable};
  Heard heard{Kind::kControl, control->function, control->data};
  heard.payload.assign(control->private_data.begin(), control->private_data.end());
  return heard;
}

bool Session::is_served() {
  for (unsigned i = 0; i < 2; ++i) {
    const Bytes payload = pattern(16, i);
    send(payload);
    const Heard answer = hear();
    if (answer.kind != Kind::kSend || answer.payload != payload) return false;
  }
  return true;
}

Association::Association(Target& target, const SctpPeer::Setup& setup, Flavour flavour, std::uint16_t neighbour_stream)
    : peer(target.meanwhile), neighbour(peer, neighbour_stream), session(peer, 0) {
  peer.connect(target.port(flavour), setup);
  neighbour.open(Function::kInitiate);
}

Reaction Association::verdict(std::optional<Function> accepts) {
  if (!accepts) session.send(pattern(16));
  std::optional<TerminateCode> code;
  Heard heard = session.hear();
  if (heard.kind == Kind::kTerminate) {
    code = heard.code;
    heard = session.hear();
  }
  Reaction out;
  if (heard.is(Function::kTerminate)) {
    out = code ? term(*code) : kSessionTerminate;
  } else if (code) {
    return term(*code) + ", then no session Terminate";
  } else if (heard.is(Function::kReject)) {
    out = kReject;
  } else if (heard.is(Function::kEnhancedReject)) {
    out = kEnhancedReject;
  } else if (accepts ? heard.is(*accepts) : heard.kind == Kind::kSend) {
    if (!session.is_served()) return "the session goes on, but is not served";
    out = kIgnore;
  } else {
    return strange(heard);
  }
  // What this session has done is no concern of another one.
  return neighbour.is_served() ? out : out + ", and another session of the association is not served";
}

Caught::Caught(Target& target, const SctpPeer::Setup& setup, Flavour flavour)
    : peer(target.meanwhile), session(peer, 0) {
  target.connect_to(peer.port(), flavour);
  peer.accept(setup);
  if (setup.indication != SctpPeer::Setup{}.indication) return;
  initiate = session.hear();
  if (!initiate.is(flavour == Flavour::kPlain ? Function::kInitiate : Function::kEnhancedInitiate))
    throw std::runtime_error("the victim did not send its Initiate: " + strange(initiate));
}

void Caught::accept() {
  if (initiate.is(Function::kInitiate)) return session.control(Function::kAccept);
  session.control(Function::kEnhancedAccept, octets(polite()));
}

Reaction Caught::verdict() {
  session.send(pattern(16));
  std::optional<TerminateCode> code;
  Heard heard = session.hear();
  if (heard.kind == Kind::kTerminate) {
    code = heard.code;
    heard = session.hear();
  }
  if (heard.is(Function::kTerminate)) {
    // Its only session: it shuts the association down, where it has heard the end of this direction, too.
    session.control(Function::kTerminate);
    if (peer.end(10s) != SctpPeer::End::kShutDown) return "session terminate, but the association stays";
    return code ? term(*code) : kSessionTerminate;
  }
  if (code) return term(*code) + ", then no session Terminate";
  if (heard.kind != Kind::kSend) return strange(heard);
  return session.is_served() ? kIgnore : "the session goes on, but is not served";
}

Reaction association_verdict(SctpPeer& peer) {
  switch (peer.end(10s)) {
    case SctpPeer::End::kAborted:
      return kAssociationAborted;
    case SctpPeer::End::kShutDown:
      return kClose;
    case SctpPeer::End::kNone:
      break;
  }
  return "silence";
}

}  // namespace iwarp::hostile::sctp
