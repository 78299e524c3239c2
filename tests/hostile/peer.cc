#include "tests/hostile/peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace iwarp::hostile {

using Kind = Heard::Kind;

Peer::Peer(const Target& target, RawTcp connection, bool crc_on, Bytes data, MarkerUse markers)
    : tcp(std::move(connection)),
      crc(crc_on),
      private_data(std::move(data)),
      settle_ms(static_cast<int>(target.settle().count())),
      meanwhile_(target.meanwhile),
      markers_(markers),
      decoder_(crc_on, markers.heard) {
  const int on = 1;
  (void)::setsockopt(tcp.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void Peer::send(const Bytes& payload, rdmap::Opcode op, std::uint32_t tail) {
  ulpdu(test::send_segment(payload, {.msn = take_msn(), .tail = tail}, op));
}

void Peer::respond(const rdmap::ReadRequest& request) {
  constexpr std::size_t kSegment = 16384;
  const auto known = exposed.find(request.source_stag);
  const Bytes data = known == exposed.end() ? pattern(request.size) : known->second;
  std::size_t at = 0;
  do {
    const std::size_t n = std::min<std::size_t>(kSegment, request.size - at);
    Bytes part(n);
    const std::uint64_t from = known == exposed.end() ? at : request.source_to + at;
    for (std::size_t i = 0; i < n && from + i < data.size(); ++i) part[i] = data[from + i];
    ulpdu(test::tagged_segment(rdmap::Opcode::kReadResponse, request.sink_stag, request.sink_to + at, part,
                               at + n == request.size));
    at += n;
  } while (at < request.size);
}

Heard Peer::hear(int limit_ms) {
  for (bool waited = false;; waited = true) {
    if (auto heard = decode()) return *heard;
    if (!waited && meanwhile_) meanwhile_();
    pollfd p{tcp.fd(), POLLIN, 0};
    if (::poll(&p, 1, limit_ms) != 1) return {Kind::kSilence};
    Bytes more(65536);
    const ssize_t n = ::recv(tcp.fd(), more.data(), more.size(), MSG_DONTWAIT);
    if (n == 0) return in_.empty() ? Heard{Kind::kFin} : Heard{Kind::kUnreadable, in_};
    if (n < 0 && errno == EAGAIN) continue;
    if (n < 0) return {Kind::kReset};
    more.resize(static_cast<std::size_t>(n));
    in_ = std::move(in_) | more;
  }
}

Heard Peer::hear_message(int limit_ms) {
  for (;;) {
    Heard heard = hear(limit_ms);
    if (heard.kind == Kind::kReadRequest) {
      respond(heard.read);
    } else if (heard.kind != Kind::kWrite && heard.kind != Kind::kReadResponse && heard.kind != Kind::kAtomicResponse) {
      return heard;
    }
  }
}

std::optional<Reaction> Peer::ending(const Heard& last) {
  switch (last.kind) {
    case Kind::kTerminate: {
      const Heard::Kind after = hear().kind;
      const bool over = after == Kind::kFin || after == Kind::kReset;
      return term(last.terminate.code) + (over ? "" : ", but TCP goes on");
    }
    case Kind::kFin:
    case Kind::kReset:
      return kClose;
    case Kind::kSilence:
      return "silence";
    case Kind::kUnreadable:
      return "unreadable octets";
    case Kind::kSend:
    case Kind::kReadRequest:
    case Kind::kReadResponse:
    case Kind::kWrite:
    case Kind::kAtomicRequest:
    case Kind::kAtomicResponse:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Heard> Peer::decode() {
  while (!in_.empty()) {
    auto result = decoder_.decode(in_);
    if (std::holds_alternative<mpa::NeedMore>(result)) return std::nullopt;
    const auto* frame = std::get_if<mpa::FpduFrame>(&result);
    if (frame == nullptr) return Heard{Kind::kUnreadable, std::move(in_)};
    const Bytes ulpdu(frame->ulpdu.begin(), frame->ulpdu.end());
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(frame->fpdu_bytes));
    if (auto heard = take_segment(ulpdu)) return heard;
  }
  return std::nullopt;
}

std::optional<Heard> Peer::take_segment(const Bytes& ulpdu) {
  const auto header = ddp::parse_segment_header(ulpdu);
  if (!header) return Heard{Kind::kUnreadable, ulpdu};
  const auto opcode = rdmap::check_control(*header, extensions);
  if (!opcode) return Heard{Kind::kUnreadable, ulpdu};
  const Bytes payload(ulpdu.begin() + static_cast<std::ptrdiff_t>(ddp::header_size(*header)), ulpdu.end());
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&*header)) {
    return Heard{*opcode == rdmap::Opcode::kWrite ? Kind::kWrite : Kind::kReadResponse, payload, tagged->stag,
                 tagged->to};
  }
  message_ = std::move(message_) | payload;
  if (!std::get<ddp::UntaggedHeader>(*header).last) return std::nullopt;
  Heard out{Kind::kSend, std::exchange(message_, {})};
  if (*opcode == rdmap::Opcode::kReadRequest) {
    const auto read = rdmap::ReadRequest::parse(out.payload);
    out.kind = read ? Kind::kReadRequest : Kind::kUnreadable;
    if (read) out.read = *read;
  } else if (*opcode == rdmap::Opcode::kTerminate) {
    const auto terminate = rdmap::TerminateMessage::parse(out.payload);
    out.kind = terminate ? Kind::kTerminate : Kind::kUnreadable;
    if (terminate) out.terminate = *terminate;
  } else if (*opcode == rdmap::Opcode::kAtomicRequest) {
    const auto atomic = rdmap::AtomicRequest::parse(out.payload);
    out.kind = atomic ? Kind::kAtomicRequest : Kind::kUnreadable;
    if (atomic) out.atomic = *atomic;
  } else if (*opcode == rdmap::Opcode::kAtomicResponse) {
    const auto answer = rdmap::AtomicResponse::parse(out.payload);
    out.kind = answer ? Kind::kAtomicResponse : Kind::kUnreadable;
    if (answer) out.answer = *answer;
  } else if (rdmap::is_immediate(*opcode)) {
    out.kind = Kind::kUnreadable;  // no victim has a reason for it
  }
  return out;
}

}  // namespace iwarp::hostile
