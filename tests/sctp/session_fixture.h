// An end of a DDP Stream Session under test: what it sends and what it tells, as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "iwarp/sctp/session.h"
#include "tests/support/hex.h"

namespace iwarp::sctp {

inline constexpr TimePoint kStart{std::chrono::seconds(1000)};

inline std::string text(const std::optional<enhanced::EnhancedData>& d) {
  if (!d) return "-";
  std::string forms = enhanced::forms_of(*d).to_string();
  return std::string(d->peer_to_peer ? "p2p " : "") + forms + " " + std::to_string(d->ird) + "/" +
         std::to_string(d->ord);
}

// "Requested(- pd=0102)", "Established(enhanced read 32/32 pd=)", "Rejected(- pd=)", "Delivered(c1)", "Ended(aborted)"
inline std::string text(const Session::Event& event) {
  if (const auto* r = std::get_if<Session::Requested>(&event))
    return "Requested(" + text(r->data) + " pd=" + test::to_hex(r->private_data) + ")";
  if (const auto* e = std::get_if<Session::Established>(&event)) {
    return std::string("Established(") + (e->enhanced ? "enhanced" : "plain") +
           " rtr=" + enhanced::name(e->settled.rtr) + " " + std::to_string(e->settled.depths.ird) + "/" +
           std::to_string(e->settled.depths.ord) + " pd=" + test::to_hex(e->private_data) + ")";
  }
  if (const auto* r = std::get_if<Session::Rejected>(&event))
    return "Rejected(" + text(r->data) + " pd=" + test::to_hex(r->private_data) + ")";
  if (const auto* d = std::get_if<Session::Delivered>(&event))
    return "Delivered(" + test::to_hex(d->segment) + (d->placed > 0 ? " and more" : "") + ")";
  const auto& e = std::get<Session::Ended>(event);
  return std::string("Ended(") + name(e.error.code) + (e.try_plain ? ", try plain" : "") + ")";
}

inline test::Bytes message_of(const SessionControl& m) {
  test::Bytes out(m.size());
  m.write_to(out);
  return out;
}

inline SessionOptions plain_options() {
  SessionOptions o;
  o.enhanced = false;
  return o;
}

class End {
 public:
  // Active.
  End(const SessionOptions& options, const char* private_data)
      : session_(options, budget_, test::hex(private_data), kStart) {
    pump();
  }
  // Passive.
  explicit End(const SessionOptions& options) : session_(options, budget_) {}

  // From the peer, as hex.
  void control(const std::string& octets) { receive(Ppid::kSessionControl, test::hex(octets)); }
  void segment(const std::string& octets) { receive(Ppid::kDdpSegment, test::hex(octets)); }
  void receive(Ppid ppid, const test::Bytes& octets, bool ordered = false) {
    receive({static_cast<std::uint32_t>(ppid), ordered, octets});
  }
  void receive(const Message& message) {
    session_.receive(message);
    pump();
  }
  // All that was sent has arrived.
  void arrived() {
    session_.arrived(session_.under_way());
    pump();
  }
  void accept(const char* private_data = "", const enhanced::Depths& depths = {32, 32}) {
    EXPECT_TRUE(session_.accept(depths, test::hex(private_data)).ok());
    pump();
  }
  void reject(const char* private_data = "") {
    EXPECT_TRUE(session_.reject(test::hex(private_data)).ok());
    pump();
  }
  void terminate() {
    session_.terminate();
    pump();
  }
  void lost() {
    session_.lost(make_error(Errc::kConnectionLost));
    pump();
  }
  void at(std::chrono::milliseconds since_start) {
    session_.on_deadline(kStart + since_start);
    pump();
  }
  // Sends one, by its hex.
  void send(const std::string& octets) {
    ASSERT_TRUE(session_.may_send_segment());
    test::Bytes m(kSsnBytes);
    write_ssn(session_.next_ssn(), m);
    sent_.push_back(test::to_hex(m) + octets);
    session_.segment_taken();
  }

  // Since the last call: what it told, and the messages that it gave to SCTP, in hex.
  std::vector<std::string> told() { return std::exchange(told_, {}); }
  std::vector<std::string> sent() { return std::exchange(sent_, {}); }
  Session& session() { return session_; }
  [[nodiscard]] SessionState state() const { return session_.state(); }
  // Octets of early messages.
  [[nodiscard]] std::size_t held() const { return budget_.held(); }

 private:
  void pump() {
    for (bool more = true; more;) {
      more = false;
      while (const auto event = session_.poll_event()) {
        told_.push_back(text(*event));
        more = true;
      }
      if (const ConstBytes m = session_.control(); !m.empty()) {
        sent_.push_back(test::to_hex(m));
        session_.control_taken();
        more = true;
      }
      EXPECT_TRUE(session_.is_consistent()) << name(session_.state());
    }
  }

  HoldBudget budget_;
  Session session_;
  std::vector<std::string> told_, sent_;
};

}  // namespace iwarp::sctp
