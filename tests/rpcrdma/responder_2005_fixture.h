// A Responder that speaks the draft of 2005, and a client played by the test.
#pragma once

#include "tests/rpcrdma/responder_fixture.h"

namespace iwarp::rpcrdma::test {

inline constexpr std::size_t kLong = 20000;

inline ResponderOptions options_2005(bool configure = false) {
  ResponderOptions out;
  out.draft_2005.enabled = true;
  out.draft_2005.configure = configure;
  out.draft_2005.incoming_reads = 4;
  out.draft_2005.align = 512;
  return out;
}

class Responder2005Test : public ResponderTest {
 protected:
  Decoded received_2005() {
    run();
    if (client_.inbox.empty()) throw std::runtime_error("client received nothing");
    const Bytes m = client_.inbox.front();
    client_.inbox.erase(client_.inbox.begin());
    return decode(m, {.dialect = {.draft_2005 = true}});
  }
  void send_done(std::uint32_t xid) {
    Header h = header(xid, Proc::kDone);
    h.draft_2005 = true;
    send(h);
    run();
  }
  // The answer to a Call without chunks, which is served with `reply`.
  Decoded answer_to(const Bytes& call, const Bytes& reply) {
    send(header(*rpc_xid(call)), call);
    const CallToken token = expect_call(call);
    EXPECT_TRUE(responder_->reply(token, to_buffer(*pool_, reply), now_).ok());
    return received_2005();
  }
  // What the client reads there now; empty: it is not exposed, or not all of it.
  Bytes read(const Segment& s) {
    const auto it = server_.regions.find(raw(s.handle));
    if (it == server_.regions.end() || it->second.access != RemoteAccess::kRead) return {};
    const MutBytes memory = it->second.memory;
    const std::uint64_t at = s.offset - it->second.base;
    if (s.offset < it->second.base || at > memory.size() || s.length > memory.size() - at) return {};
    const MutBytes m = memory.subspan(static_cast<std::size_t>(at), s.length);
    return Bytes(m.begin(), m.end());
  }
  std::optional<Responder::MustClose> closing() {
    while (auto e = responder_->poll_event()) {
      if (auto* m = std::get_if<Responder::MustClose>(&*e)) return *m;
    }
    return std::nullopt;
  }
};

}  // namespace iwarp::rpcrdma::test
