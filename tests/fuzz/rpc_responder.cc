// A Responder between a fuzzed client and a server that answers whatever it likes.
#include "iwarp/rpcrdma/responder.h"

#include "tests/fuzz/rpc_messages.h"

namespace iwarp::fuzz {

using namespace rpcrdma;

namespace {

ResponderOptions made_options(Script& in) {
  const std::uint8_t a = in.u8();
  ResponderOptions o;
  o.credits = (a & 1) != 0 ? 1 : 4;
  o.backward_credits = (a >> 1) & 3;
  o.inline_bytes = (a & 8) != 0 ? 1024 : 4096;
  o.max_call_bytes = (a & 16) != 0 ? 2000 : 16384;
  o.enforce_binding = (a & 32) == 0;
  o.remote_invalidation = (a & 64) == 0;
  if ((a & 128) != 0) o.header_limits = {2, 1, 2};
  return o;
}

EndpointLimits made_limits(std::uint8_t a) {
  return {.max_sge = (a & 1) != 0 ? 2u : 8u,
          .max_outstanding_reads = a >> 1 & 3u,
          .send_queue_depth = (a & 8) != 0 ? 2u : 16u,
          .receive_queue_depth = 512};
}

class ResponderWorld {
 public:
  explicit ResponderWorld(Script& in) : options_(made_options(in)) {
    const std::uint8_t limits = in.u8();
    server_.limits_now = made_limits(limits);
    if ((limits & 16) != 0) options_.highest_version = kVersion2;
    options_.backward_chunks = (limits & 32) != 0;
    options_.max_backward_reply_bytes = 5000;
    options_.backward_retransmission = (limits & 64) != 0;
    if ((limits & 128) != 0) FUZZ_CHECK(options_.extensions.add(1, OptionRegistry::Payload::kNever).ok());
    if ((limits & 144) == 128) {
      options_.draft_2005.enabled = true;
      options_.draft_2005.configure = (limits & 64) != 0;
      options_.draft_2005.align = options_.draft_2005.reply_align = 256;
      options_.draft_2005.done.max_replies = 3;
      options_.draft_2005.done.late = (limits & 32) != 0 ? DoneOptions::Late::kClose : DoneOptions::Late::kFree;
    }
    client_.raw = true;
    FakeEndpoint::join(server_, client_);
    BufferPool::Options pool = pool_options(options_);
    if (in.flag()) pool.call_bytes = 8192;
    pool_.emplace(server_, pool);
    responder_.emplace(server_, *pool_, negotiate({true, 4096, 4096}, private_data(options_)), options_);
    server_.deliver = [this](const Completion& c) { responder_->on_completion(c); };
    FUZZ_CHECK(responder_->start().ok());
  }

  void run(Script script) {
    while (!script.done()) {
      operation(script);
      drain(script.flag());
      FUZZ_CHECK(responder_->outstanding_calls() <= most_credits_ + options_.backward_credits);
    }
    finish();
  }

 private:
  void operation(Script& in) {
    const std::uint8_t what = in.u8();
    const std::uint32_t xid = what >> 4;
    switch (what & 15) {
      case 0:
      case 1:
      case 2: {
        const Header h = made_header(in, xid, peer_);
        const bool backward = in.u8() >= 240;
        const Bytes rpc = rpc_message(in, xid, backward ? RpcDirection::kReply : RpcDirection::kCall);
        peer_.fill_read_memory(rpc);
        arrive(server_, encoded(h, rpc));
        break;
      }
      case 3: {
        const auto raw = in.bytes(in.u8());
        arrive(server_, Bytes(raw.begin(), raw.end()));
        break;
      }
      case 4:
      case 5:
        for (int i = 0; i <= static_cast<int>(xid); ++i) (void)server_.step();
        break;
      case 6:
      case 7:
        answer(in, xid);
        break;
      case 8:
        if (const auto asked = backward_.find(xid); asked != backward_.end()) answer_backward(in, asked->second);
        break;
      case 9:
        if (!calls_.empty()) responder_->abandon(calls_[xid % calls_.size()].token);
        break;
      case 10:
        if (auto message = buffer(rpc_message(in, xid, RpcDirection::kCall), BufferPool::Purpose::kBackward)) {
          (void)responder_->send_backward_call(std::move(*message), now_);
        }
        break;
      case 11:
        (void)responder_->cancel_backward_call(xid);
        break;
      case 12:
        calls_.clear();
        responder_->progress();
        break;
      case 13:
        server_.refuse_posts = xid == 1;
        server_.refuse_registrations = xid == 2;
        break;
      case 14:
        pool_->trim();
        now_ += std::chrono::seconds(xid * 8);
        responder_->on_deadline(now_);
        break;
      case 15:
        if (xid == 0) responder_->on_disconnect();
        if (xid == 1) server_.disconnect();
        if (xid == 2 && closed_) again();
        if (xid > 2 && responder_->set_credits(xid - 2).ok()) most_credits_ = std::max(most_credits_, xid - 2);
        break;
    }
  }

  void again() {
    const auto outstanding = responder_->take_outstanding_backward();
    for (const OutstandingCall& c : outstanding) FUZZ_CHECK(rpc_xid(c.message) == c.xid);
    FUZZ_CHECK(responder_->take_outstanding_backward().empty());
    for (OutstandingCall c : outstanding) FUZZ_CHECK(!responder_->send_backward_again(std::move(c), now_).ok());
  }

  // The client answers a backward Call through the Reply chunk that it was offered.
  void answer_backward(Script& in, const Header& call) {
    Segment s = call.reply_chunk->segments[0];
    const Bytes rpc = rpc_message(in, call.xid, RpcDirection::kReply);
    const auto region = server_.regions.find(raw(s.handle));
    if (region == server_.regions.end() || region->second.access != RemoteAccess::kWrite) return;
    FUZZ_CHECK(region->second.base == s.offset && region->second.memory.size() == s.length);
    std::copy_n(rpc.begin(), std::min(rpc.size(), region->second.memory.size()), region->second.memory.begin());
    s.length = in.flag() ? in.u32() : static_cast<std::uint32_t>(rpc.size());
    Header h = header(call.xid, Proc::kNomsg, in.u8());
    h.reply_chunk.emplace().segments.push_back(s);
    arrive(server_, encode(h));
  }

  void answer(Script& in, std::uint32_t which) {
    if (calls_.empty()) return;
    const std::size_t i = which % calls_.size();
    if (auto message = buffer(rpc_message(in, calls_[i].xid, RpcDirection::kReply), BufferPool::Purpose::kReply)) {
      if (responder_->reply(calls_[i].token, std::move(*message), now_).ok()) {
        FUZZ_CHECK(!responder_->reply(calls_[i].token, Buffer{}).ok());  // a token names one Call once
        calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  [[nodiscard]] std::optional<Buffer> buffer(const Bytes& content, BufferPool::Purpose purpose) {
    auto out = pool_->acquire(content.size(), purpose);
    if (out) std::copy(content.begin(), content.end(), out->bytes().begin());
    return out;
  }

  void drain(bool keep_messages) {
    while (auto event = responder_->poll_event()) {
      FUZZ_CHECK(!closed_);
      if (auto* call = std::get_if<Responder::CallReceived>(&*event)) {
        FUZZ_CHECK(call->message.headroom() >= kHeadroomBytes && call->message.size() >= 8);
        FUZZ_CHECK(load_be<std::uint32_t>(call->message.bytes()) == call->xid);
        if (!keep_messages) call->message.reset();
        calls_.push_back(std::move(*call));
      } else {
        closed_ = std::holds_alternative<Responder::MustClose>(*event);
      }
    }
    while (auto option = responder_->poll_option()) {
      const auto* received = std::get_if<OptionReceived>(&*option);
      FUZZ_CHECK(received == nullptr || !received->message);
    }
    FUZZ_CHECK(responder_->replies_kept() <= options_.draft_2005.done.max_replies);
    check_inbox(client_, options_.highest_version, options_.draft_2005.enabled);
    for (const Bytes& message : client_.inbox) {
      const ParseResult result = Header::parse(message, kAnyHeader);
      const auto* parsed = std::get_if<ParsedHeader>(&result);
      if (parsed == nullptr || !is_call(*parsed, message)) continue;
      const Header& h = parsed->header;
      const bool offers = h.reply_chunk && h.reply_chunk->segments.size() == 1 && h.reply_chunk->length() > 0;
      if (offers && options_.backward_chunks) backward_[h.xid] = h;
    }
    client_.inbox.clear();
  }

  void finish() {
    server_.disconnect();
    drain(false);
    calls_.clear();
    responder_.reset();
    for (std::size_t i = 0; i < BufferPool::kPurposes; ++i) {
      FUZZ_CHECK(pool_->in_use_bytes(static_cast<BufferPool::Purpose>(i)) == 0);
    }
    pool_.reset();
    // What was exposed when the connection ended goes with it.
    for (const auto& [stag, region] : server_.regions) FUZZ_CHECK(options_.backward_chunks && region.access);
  }

  ResponderOptions options_;
  std::uint32_t most_credits_ = options_.credits;
  FakeEndpoint server_{0x100};
  FakeEndpoint client_{0x900};
  PeerMemory peer_{client_};
  std::optional<BufferPool> pool_;
  std::optional<Responder> responder_;
  std::vector<Responder::CallReceived> calls_;
  std::map<std::uint32_t, Header> backward_;  // with a Reply chunk
  TimePoint now_{};
  bool closed_ = false;
};

}  // namespace

void run_responder(Script script) {
  ResponderWorld(script).run(script);
}

}  // namespace iwarp::fuzz
