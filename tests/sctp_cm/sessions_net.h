// Two ends with sessions over one association, on loopback.
#pragma once

#include <map>

#include "iwarp/sctp_cm/sessions.h"
#include "tests/sctp_cm/net.h"

namespace iwarp::sctp_cm {

// Hears of the sessions of one end; accepts what comes, unless told otherwise.
struct SessionHearer : SessionsUser {
  struct Of {
    bool requested = false, established = false, rejected = false;
    std::optional<sctp::Session::Established> terms;  // without its span
    std::string private_data;                         // of the last event that had some
    std::vector<std::string> segments;
    std::optional<Error> ended;
    bool try_plain = false;
  };
  std::map<std::uint16_t, Of> of;
  bool ready = false;
  int rooms = 0;
  std::optional<Error> end;
  std::function<void(sctp::StreamId)> when_requested = [](sctp::StreamId) {};
  std::function<void()> when_room = [] {};

  static std::string text(ConstBytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
  void on_ready() override { ready = true; }
  std::size_t on_early(sctp::StreamId, const sctp::Session::Early&) override { return 0; }
  void on_event(sctp::StreamId stream, const sctp::Session::Event& event) override {
    Of& s = of[raw(stream)];
    if (const auto* r = std::get_if<sctp::Session::Requested>(&event)) {
      s = {};  // another session
      s.requested = true;
      s.private_data = text(r->private_data);
      when_requested(stream);
    } else if (const auto* e = std::get_if<sctp::Session::Established>(&event)) {
      s.established = true;
      s.terms = *e;
      s.terms->private_data = {};
      if (!e->private_data.empty()) s.private_data = text(e->private_data);
    } else if (const auto* j = std::get_if<sctp::Session::Rejected>(&event)) {
      s.rejected = true;
      s.private_data = text(j->private_data);
    } else if (const auto* d = std::get_if<sctp::Session::Delivered>(&event)) {
      s.segments.push_back(text(d->segment));
    } else {
      EXPECT_FALSE(s.ended);
      s.ended = std::get<sctp::Session::Ended>(event).error;
      s.try_plain = std::get<sctp::Session::Ended>(event).try_plain;
    }
  }
  void on_room() override { ++rooms, when_room(); }
  void on_end(const Error& why) override { end = why; }
};

// A message with room for the DDP-SSN.
inline std::vector<std::byte> message(const std::string& segment) {
  std::vector<std::byte> out(sctp::kSsnBytes);
  const ConstBytes text = octets(segment);
  out.insert(out.end(), text.begin(), text.end());
  return out;
}

class SctpSessions : public SctpTransport {
 protected:
  using Side = sctp::Association::Side;

  // Both ends, up.
  void open(StackOptions options = {}, const TransportOptions& transport = {},
            const sctp::AssociationOptions& there = {}) {
    start(options);
    auto l = stack->listen({boost::asio::ip::make_address("127.0.0.1"), 0}, kSctpPort, transport,
                           [this, there](std::shared_ptr<Association> accepted) {
                             b = std::make_unique<Sessions>(io, there, Side::kAccepted, at_b);
                             accepted->set_user(b.get());
                             b->attach(std::move(accepted));
                           });
    ASSERT_TRUE(l) << l.error().why;
    listener = *std::move(l);
    a = std::make_unique<Sessions>(io, sctp::AssociationOptions{}, Side::kConnected, at_a);
    auto association = stack->connect(listener->local(), kSctpPort, transport, *a);
    ASSERT_TRUE(association);
    a->attach(*association);
    ASSERT_TRUE(run([&] { return (at_a.ready && at_b.ready) || at_a.end; }));
    at_b.when_requested = [this](sctp::StreamId stream) {
      EXPECT_TRUE(b->accept(stream, {16, 16}, octets("welcome")));
    };
  }
  // A session, established.
  sctp::StreamId join(const sctp::SessionOptions& options = {}) {
    const auto stream = a->open(options, octets("hello"));
    EXPECT_TRUE(stream) << stream.error().why;
    EXPECT_TRUE(run([&] { return at_a.of[raw(*stream)].established && at_b.of[raw(*stream)].established; }));
    return *stream;
  }
  bool send(Sessions& from, sctp::StreamId stream, const std::string& segment) {
    auto octets = message(segment);
    const auto taken = from.send_segment(stream, octets);
    return taken && *taken;
  }
  void TearDown() override {
    a.reset();
    b.reset();
    SctpTransport::TearDown();
  }

  SessionHearer at_a, at_b;
  std::unique_ptr<Sessions> a, b;
};

}  // namespace iwarp::sctp_cm
