#include "tools/probe/sctp_dialogue.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "iwarp/sctp_cm/stack.h"
#include "tools/probe/raw_control.h"
#include "tools/probe/rtr.h"
#include "tools/probe/sctp_judgement.h"

namespace iwarp::tools::probe {
namespace {

using Clock = std::chrono::steady_clock;
using Sessions = SctpQuestion::Sessions;
using boost::asio::ip::udp;

constexpr std::uint16_t kFirstStream = 0;
constexpr std::uint16_t kSecondStream = 2;  // as an end of iwarp has it that has sent the INIT

// One association.
class SctpTalk final : public sctp_cm::TransportUser {
 public:
  SctpTalk(boost::asio::io_context& io, const SctpQuestion& question, ConstBytes private_data,
           const SctpDialogueOptions& options)
      : io_(io), question_(question), initiate_(question.initiate(private_data)), options_(options) {}
  ~SctpTalk() override {
    if (transport_ != nullptr && !end_) transport_->leave();
  }
  SctpTalk(const SctpTalk&) = delete;
  SctpTalk& operator=(const SctpTalk&) = delete;

  SctpAnswer run(sctp_cm::Stack& stack, const udp::endpoint& to) {
    const auto start = Clock::now();
    sctp_cm::TransportOptions o;
    o.packet_bytes = options_.packet_bytes;
    o.connect_timeout = options_.timeout;
    auto association = stack.connect(to, to.port(), o, *this);
    if (!association) {
      answer_.why = association.error().why;
      return std::move(answer_);
    }
    transport_ = *std::move(association);
    // The limit is that of the association, which tells the cause.
    (void)wait([&] { return answer_.init.has_value(); }, options_.timeout + std::chrono::seconds(1));
    if (!answer_.init) {
      answer_.why = end_ ? end_->why : "no association in time";
      return std::move(answer_);
    }
    answer_.state = SctpState::kOpen;
    if (indicates_ddp(answer_)) {
      converse(start);
    } else {
      took(start);
    }
    close();
    return std::move(answer_);
  }

  void on_up(const sctp_cm::TransportUp& up) override {
    answer_.init = {up.indication, up.inbound, up.outbound, up.fragmentation_point};
  }
  void on_message(sctp::StreamId stream, const sctp::Message& m) override {
    if (++messages_ > SctpAnswer::kMaxMessages) return;
    SctpMessage message{m.ppid, m.ordered, {m.bytes.begin(), m.bytes.end()}};
    auto& sessions = answer_.sessions;
    const auto of =
        std::find_if(sessions.rbegin(), sessions.rend(), [&](const SctpSession& s) { return s.stream == raw(stream); });
    if (of != sessions.rend()) {
      of->heard.push_back(std::move(message));
      return;
    }
    const auto control = RawControl::parse(message);  // the peer may be active itself, on another stream
    if (!control || !control->is(sctp::Function::kInitiate)) answer_.strays.push_back(raw(stream));
  }
  void on_room() override {}
  void on_all_arrived() override { all_arrived_ = true; }
  void on_end(const Error& why) override { end_ = why; }

 private:
  // Until `done`, or the end of the association, or `limit`; whether it is done.
  template <class Done>
  bool wait(const Done& done, std::chrono::milliseconds limit) {
    const auto until = Clock::now() + limit;
    while (!done() && !end_ && Clock::now() < until) {
      io_.restart();
      io_.run_one_until(until);
    }
    return done();
  }

  void took(TimePoint start) {
    answer_.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  }

  // What does not get through ends the association, which is told.
  void send(std::uint16_t stream, sctp::Ppid ppid, ConstBytes message) {
    all_arrived_ = false;
    if (!end_) (void)transport_->send(sctp::StreamId{stream}, ppid, true, message);
  }

  void converse(TimePoint start) {
    const std::size_t first = begin(kFirstStream);
    took(start);
    if (!accepted(session(first)) || question_.sessions == Sessions::kOne) return finish(first);
    if (question_.sessions == Sessions::kAgain) {
      finish(first);
      // No message of the first may be outstanding. req: RFC5043-6.6-5
      if (!is_over(session(first)) || !wait([&] { return all_arrived_; }, options_.quiet)) return;
      return finish(begin(kFirstStream));
    }
    send_rtr(first);
    if (std::min(answer_.init->inbound, answer_.init->outbound) <= kSecondStream) return finish(first);
    const std::size_t second = begin(kSecondStream);
    finish(first);
    if (!accepted(session(second))) return finish(second);
    (void)wait([&] { return has_terminate(session(second)); }, options_.quiet);
    finish(second);
  }

  [[nodiscard]] SctpSession& session(std::size_t i) { return answer_.sessions[i]; }

  // The Initiate, and the wait for the answer.
  std::size_t begin(std::uint16_t stream) {
    const std::size_t i = answer_.sessions.size();
    answer_.sessions.push_back({.stream = stream});
    next_ssn_.push_back(1);
    send(stream, sctp::Ppid::kSessionControl, initiate_);
    if (wait([&] { return answer_to(session(i)).has_value(); }, options_.timeout) && answer_to(session(i))->ssn != 0)
      (void)wait([&] { return answer_to(session(i))->ssn == 0; }, options_.quiet);  // one that has been overtaken
    return i;
  }

  void send_rtr(std::size_t i) {
    SctpSession& s = session(i);
    const auto said = answer_to(s);
    if (!question_.enhanced() || !accepted(s) || !said->enhanced || s.rtr.fate != RtrResult::Fate::kNotSent) return;
    const mpa::Rtr form = rtr_to_send(question_.data, *said->enhanced);
    if (form == mpa::Rtr::kNone || has_terminate(s) || end_) return;
    std::vector<std::byte> message(sctp::kSsnBytes);
    const auto segment = rtr_segment(form);
    message.insert(message.end(), segment.begin(), segment.end());
    sctp::write_ssn(sctp::DdpSsn{next_ssn_[i]++}, message);
    send(s.stream, sctp::Ppid::kDdpSegment, message);
    const auto result = [&] { return rtr_result(form, session(i)).has_value(); };
    (void)wait([&] { return result() || has_terminate(session(i)); },
               form == mpa::Rtr::kRead ? options_.timeout : options_.quiet);
    if (has_terminate(session(i))) (void)wait(result, options_.quiet);  // it may have overtaken a segment
    RtrResult& rtr = session(i).rtr;
    if (const auto found = rtr_result(form, session(i))) {
      rtr = *found;
      return;
    }
    rtr.form = form;
    rtr.fate = RtrResult::Fate::kEnded;
    if (end_) {
      rtr.what = "the end of the association";
    } else if (has_terminate(session(i))) {
      rtr.what = "the end of the session";
    } else {
      rtr.fate = form == mpa::Rtr::kRead ? RtrResult::Fate::kNoResponse : RtrResult::Fate::kTaken;
    }
  }

  // The RTR, and this end's Terminate, where there is something to end.
  void finish(std::size_t i) {
    send_rtr(i);
    SctpSession& s = session(i);
    s.left = has_terminate(s) || end_.has_value();
    const auto said = answer_to(s);
    if (end_ || (said && (said->is(sctp::Function::kReject) || said->is(sctp::Function::kTerminate)))) return;
    // An answer tells that the Initiate has arrived, or SCTP does. req: RFC5043-6.6-1
    if (!said && !all_arrived_) return;
    std::vector<std::byte> message(sctp::kControlHeaderBytes);
    sctp::SessionControl{.ssn = sctp::DdpSsn{next_ssn_[i]++}, .function = sctp::Function::kTerminate}.write_to(message);
    send(s.stream, sctp::Ppid::kSessionControl, message);
    (void)wait([&] { return is_over(session(i)); }, options_.quiet);
  }

  void close() {
    if (end_) {
      answer_.state = end_->code == Errc::kPeerClosed ? SctpState::kShutDown : SctpState::kAborted;
      answer_.why = end_->why;
    } else {
      transport_->shutdown();
      (void)wait([&] { return end_.has_value(); }, std::max(options_.quiet, kFarewell));
    }
    // In order, by either end: all that it had sent came before.
    answer_.whole = end_ && (end_->code == Errc::kPeerClosed || end_->code == Errc::kAborted) &&
                    messages_ <= SctpAnswer::kMaxMessages;
  }

  static constexpr std::chrono::milliseconds kFarewell{1000};

  boost::asio::io_context& io_;
  const SctpQuestion& question_;
  const std::vector<std::byte> initiate_;
  const SctpDialogueOptions& options_;
  std::shared_ptr<sctp_cm::Transport> transport_;
  SctpAnswer answer_;
  std::vector<std::uint16_t> next_ssn_;  // of each session
  std::size_t messages_ = 0;
  bool all_arrived_ = false;
  std::optional<Error> end_;
};

class StackDialogue final : public SctpDialogue {
 public:
  explicit StackDialogue(const SctpDialogueOptions& options) : options_(options) {}
  Result<void> open() {
    auto stack = sctp_cm::Stack::make(io_, {});
    if (!stack) return stack.error();
    stack_ = *std::move(stack);
    return {};
  }
  SctpAnswer ask(const SctpQuestion& question, ConstBytes private_data, const udp::endpoint& to) override {
    return SctpTalk(io_, question, private_data, options_).run(*stack_, to);
  }

 private:
  const SctpDialogueOptions options_;
  boost::asio::io_context io_{1};
  std::unique_ptr<sctp_cm::Stack> stack_;
};

}  // namespace

Result<std::unique_ptr<SctpDialogue>> make_sctp_dialogue(const SctpDialogueOptions& options) {
  auto dialogue = std::make_unique<StackDialogue>(options);
  if (const auto opened = dialogue->open(); !opened) return opened.error();
  return std::unique_ptr<SctpDialogue>(std::move(dialogue));
}

}  // namespace iwarp::tools::probe
