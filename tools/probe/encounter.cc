#include "tools/probe/encounter.h"

#include <algorithm>

namespace iwarp::tools::probe {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = FirstMessage::Kind;

constexpr std::size_t kMaxOctetsBehind = 128 * 1024;  // more than the longest FPDU

// Whether there is no point in waiting for the rest.
bool startup_over(const std::vector<std::byte>& octets) {
  const auto frame = RawFrame::parse(octets);
  if (!frame) return false;
  return !frame->is_request() || frame->complete() || frame->private_data_length > mpa::kMaxPrivateDataBytes;
}

TcpState state_after(Socket::Read last) {
  return last == Socket::Read::kFin     ? TcpState::kClosed
         : last == Socket::Read::kReset ? TcpState::kReset
                                        : TcpState::kOpen;
}

// The Request, and what comes behind it before it has its Reply.
TcpState read_request(Socket& socket, std::vector<std::byte>& into, const EncounterOptions& options) {
  auto deadline = Clock::now() + options.timeout;
  Socket::Read last = Socket::Read::kData;
  bool over = false;
  while (last == Socket::Read::kData && into.size() < Answer::kMaxOctets) {
    last = socket.read_some(into, Answer::kMaxOctets - into.size(), deadline);
    if (!over && startup_over(into)) {
      over = true;
      deadline = Clock::now() + options.quiet;
    }
  }
  return state_after(last);
}

// Until the first message has come, or the end, or the time is over.
void read_first(Socket& socket, Encounter& e, bool crc, Clock::time_point deadline) {
  std::vector<std::byte> octets;
  Socket::Read last = Socket::Read::kData;
  while (last == Socket::Read::kData && octets.size() < kMaxOctetsBehind) {
    last = socket.read_some(octets, kMaxOctetsBehind - octets.size(), deadline);
    e.octets_behind = octets.size();
    if (octets.empty()) continue;
    if (auto first = first_message(crc, octets)) {
      e.first = std::move(*first);
      break;
    }
  }
  e.at_end = state_after(last);
  if (e.octets_behind != 0 && e.first.kind == Kind::kNone)
    e.first = {.kind = Kind::kNoFpdu, .what = std::to_string(e.octets_behind) + " octets, no whole FPDU"};
}

// The peer owes its end.
void read_end(Socket& socket, Encounter& e, Clock::time_point deadline) {
  std::vector<std::byte> octets;
  Socket::Read last = Socket::Read::kData;
  while (last == Socket::Read::kData && octets.size() < kMaxOctetsBehind)
    last = socket.read_some(octets, kMaxOctetsBehind - octets.size(), deadline);
  e.at_end = state_after(last);
}

}  // namespace

std::optional<RawFrame> Encounter::parsed_request() const {
  const auto frame = RawFrame::parse(request);
  return frame && frame->is_request() ? frame : std::nullopt;
}

Encounter meet(const Trial& trial, ConstBytes private_data, Socket& socket, std::string peer,
               const EncounterOptions& options) {
  Encounter e{.trial = &trial, .peer = std::move(peer)};
  e.at_end = read_request(socket, e.request, options);
  const auto request = e.parsed_request();
  if (e.at_end != TcpState::kOpen || !request || !request->complete() ||
      request->private_data_length > mpa::kMaxPrivateDataBytes)
    return e;
  e.reply = trial.reply(*request, private_data);
  if (e.reply.empty()) return e;
  const auto deadline = Clock::now() + options.timeout;
  (void)socket.send(e.reply, deadline);
  const auto reply = e.parsed_reply();
  const bool crc = request->crc || (reply && reply->crc);
  // A rejected peer may keep the TCP connection, so nothing is to be waited for but what is not allowed.
  const bool rejected = trial.answer == Trial::Answer::kReject;
  read_first(socket, e, crc, rejected ? std::min(deadline, Clock::now() + 4 * options.quiet) : deadline);
  if (e.first.kind == Kind::kRead && e.first.empty && e.at_end == TcpState::kOpen) {
    (void)socket.send(read_response(e.first.read, crc), deadline);
  } else if (e.first.kind == Kind::kTerminate && e.at_end == TcpState::kOpen) {
    read_end(socket, e, Clock::now() + options.timeout);
  }
  return e;
}

std::vector<std::byte> request_of(Socket& socket, const EncounterOptions& options) {
  std::vector<std::byte> octets;
  (void)read_request(socket, octets, options);
  return octets;
}

}  // namespace iwarp::tools::probe
