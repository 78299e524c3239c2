#include "tools/probe/dialogue.h"

#include "tools/probe/raw_frame.h"
#include "tools/probe/rtr.h"
#include "tools/probe/socket.h"

namespace iwarp::tools::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxAnswerBytes = 128 * 1024;  // to the RTR: more than the longest FPDU

// Whether there is no point in waiting for the rest.
bool startup_over(const std::vector<std::byte>& octets) {
  const auto reply = RawFrame::parse(octets);
  if (!reply) return false;
  return !reply->is_reply() || reply->complete() || reply->private_data_length > mpa::kMaxPrivateDataBytes;
}

TcpState state_after(Socket::Read last) {
  return last == Socket::Read::kFin     ? TcpState::kClosed
         : last == Socket::Read::kReset ? TcpState::kReset
                                        : TcpState::kOpen;
}

RtrResult send_rtr(Socket& socket, mpa::Rtr form, bool crc, const DialogueOptions& options, TcpState& end) {
  RtrResult result{.form = form, .fate = RtrResult::Fate::kEnded, .code = {}, .what = {}};
  const auto deadline = Clock::now() + (form == mpa::Rtr::kRead ? options.timeout : options.quiet);
  (void)socket.send(rtr_fpdu(form, crc), deadline);
  std::vector<std::byte> octets;
  Socket::Read last = Socket::Read::kData;
  while (last == Socket::Read::kData && octets.size() < kMaxAnswerBytes) {
    last = socket.read_some(octets, kMaxAnswerBytes - octets.size(), deadline);
    if (const auto found = rtr_answer(form, crc, octets)) {
      result = *found;
      break;
    }
  }
  end = state_after(last);
  if (result.fate != RtrResult::Fate::kEnded || end != TcpState::kOpen) return result;
  result.fate = form == mpa::Rtr::kRead ? RtrResult::Fate::kNoResponse : RtrResult::Fate::kTaken;
  return result;
}

}  // namespace

Answer ask(const Question& question, ConstBytes private_data, const boost::asio::ip::tcp::endpoint& to,
           const DialogueOptions& options) {
  Answer answer;
  Socket socket;
  const auto start = Clock::now();
  if (!socket.connect(to, start + options.timeout, options.tap_maker, answer.why)) return answer;

  auto deadline = Clock::now() + options.timeout;
  (void)socket.send(question.request(private_data), deadline);
  Socket::Read last = Socket::Read::kData;
  bool over = false;
  while (last == Socket::Read::kData && answer.octets.size() < Answer::kMaxOctets) {
    last = socket.read_some(answer.octets, Answer::kMaxOctets - answer.octets.size(), deadline);
    if (!over && startup_over(answer.octets)) {
      over = true;
      answer.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
      deadline = Clock::now() + options.quiet;
    }
  }
  if (!over) answer.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  answer.after_reply = answer.at_end = state_after(last);
  if (answer.after_reply != TcpState::kOpen) return answer;

  const auto reply = RawFrame::parse(answer.octets);
  const mpa::Rtr form = reply ? rtr_to_send(question, *reply) : mpa::Rtr::kNone;
  if (form != mpa::Rtr::kNone) answer.rtr = send_rtr(socket, form, question.crc || reply->crc, options, answer.at_end);
  return answer;
}

}  // namespace iwarp::tools::probe
