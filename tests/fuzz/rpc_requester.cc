// A Requester between an RPC client that sends whatever it likes and a fuzzed server.
#include "iwarp/rpcrdma/requester.h"

#include "tests/fuzz/rpc_messages.h"

namespace iwarp::fuzz {

using namespace rpcrdma;

namespace {

RequesterOptions made_options(Script& in) {
  const std::uint8_t a = in.u8();
  RequesterOptions o;
  o.credits = (a & 1) != 0 ? 1 : 4;
  o.backward_credits = (a >> 1) & 3;
  o.inline_bytes = (a & 8) != 0 ? 1024 : 4096;
  o.max_reply_bytes = (a & 16) != 0 ? 900 : 9000;
  o.max_queued_calls = (a & 32) != 0 ? 1 : 4;
  o.remote_invalidation = (a & 64) == 0;
  if ((a & 128) != 0) o.header_limits = {2, 1, 2};
  return o;
}

class RequesterWorld {
 public:
  explicit RequesterWorld(Script& in) : options_(made_options(in)) {
    const std::uint8_t a = in.u8();
    client_.limits_now.max_sge = (a & 1) != 0 ? 2 : 8;
    client_.limits_now.send_queue_depth = (a & 2) != 0 ? 2 : 16;
    if ((a & 8) != 0) options_.highest_version = kVersion2;
    if ((a & 24) == 24) options_.lowest_version = kVersion2;
    if ((a & 24) == 16) {
      options_.draft_2005.enabled = true;
      options_.draft_2005.configure = (a & 64) != 0;
      options_.draft_2005.offer_reply_memory = (a & 32) != 0;
    }
    if ((a & 32) != 0) options_.offers = {.write_chunks = 3, .with_reply_chunk = true, .least_bytes = 0};
    options_.backward_chunks = (a & 64) != 0;
    options_.max_backward_call_bytes = 5000;
    options_.retransmission = (a & 128) != 0;
    if ((a & 128) != 0) FUZZ_CHECK(options_.extensions.add(1, OptionRegistry::Payload::kAlways).ok());
    server_.raw = true;
    FakeEndpoint::join(client_, server_);
    BufferPool::Options pool = pool_options(options_);
    if ((a & 4) != 0) pool.reply_bytes = 20000;
    pool_.emplace(client_, pool);
    requester_.emplace(client_, *pool_, negotiate(private_data(options_), {true, 4096, 4096}), options_);
    client_.deliver = [this](const Completion& c) { requester_->on_completion(c); };
    FUZZ_CHECK(requester_->start().ok());
  }

  void run(Script script) {
    while (!script.done()) {
      operation(script);
      drain();
      FUZZ_CHECK(requester_->credits().in_flight() <= most_credits_);
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
      case 2:
        if (auto message = buffer(rpc_message(in, xid, RpcDirection::kCall), BufferPool::Purpose::kCall)) {
          (void)requester_->call(std::move(*message), {});
        }
        break;
      case 3:
      case 4:
      case 5:
        reply(in, xid);
        break;
      case 6: {
        const auto raw = in.bytes(in.u8());
        arrive(client_, Bytes(raw.begin(), raw.end()));
        break;
      }
      case 7:
        for (int i = 0; i <= static_cast<int>(xid); ++i) (void)client_.step();
        break;
      case 8: {  // a backward Call
        const Header h = made_header(in, xid, peer_);
        const Bytes rpc = rpc_message(in, xid, RpcDirection::kCall);
        peer_.fill_read_memory(rpc);
        arrive(client_, encoded(h, rpc));
        break;
      }
      case 9:
        answer_backward(in, xid);
        break;
      case 10:
        (void)requester_->cancel(xid);
        break;
      case 11:
        requester_->progress();
        break;
      case 12:
        if (!backward_.empty()) requester_->abandon_backward(backward_[xid % backward_.size()].token);
        break;
      case 13:
        client_.refuse_posts = xid == 1;
        client_.refuse_registrations = xid == 2;
        client_.refuse_invalidation = xid == 3 || xid == 5;
        if (xid == 5) client_.refuse_registration_number = 2;
        break;
      case 14:
        replies_.clear();
        break;
      case 15:
        if (xid == 0) requester_->on_disconnect();
        if (xid == 1) client_.disconnect();
        if (xid == 2) again();
        if (xid > 2 && requester_->set_credits(xid - 2).ok()) most_credits_ = std::max(most_credits_, xid - 2);
        break;
    }
  }

  // What ended before goes once more. Nobody else takes what it gives, so this connection does, if it can.
  void again() {
    if (!closed_) return;
    const auto outstanding = requester_->take_outstanding();
    for (const OutstandingCall& c : outstanding) FUZZ_CHECK(rpc_xid(c.message) == c.xid);
    FUZZ_CHECK(requester_->take_outstanding().empty());
    for (OutstandingCall c : outstanding) FUZZ_CHECK(!requester_->call_again(std::move(c)).ok());
  }

  // The server answers: in line, through the chunks that were offered, or with a header of its own making.
  void reply(Script& in, std::uint32_t xid) {
    const std::uint8_t how = in.u8();
    if (requester_->configuration().state() == ConfigClient::State::kAsking && !calls_.empty()) {
      const std::uint32_t asked = calls_.rbegin()->first;  // far from the others
      const Bytes terms = (how & 2) != 0 ? words({in.u32(), in.u32(), in.u32()})
                                         : words({1024u + in.u16(), std::uint32_t{1} << in.u8() % 20, in.u8()});
      return arrive(client_, encode(header(asked), (how & 4) != 0 ? read_error(asked) : rpc_reply(asked, terms)));
    }
    if ((how & 1) != 0) {
      const Header h = made_header(in, xid, peer_);
      const bool needs = h.proc == Proc::kMsg || h.proc == Proc::kMsgp || options_.draft_2005.enabled;
      const Bytes rpc = needs ? rpc_message(in, xid, RpcDirection::kReply) : Bytes{};
      peer_.fill_read_memory(rpc);
      arrive(client_, encoded(h, rpc));
      return;
    }
    const auto seen = calls_.find(xid);
    const Bytes rpc = rpc_message(in, xid, RpcDirection::kReply);
    Header h = header(xid, Proc::kMsg, in.u8());
    std::optional<Stag> invalidated;
    if (seen != calls_.end()) {
      const Header& call = seen->second;
      h.version = (how & 64) != 0 ? 3 - call.version : call.version;
      if (call.reply_chunk && (how & 2) != 0) {
        Segment s = call.reply_chunk->segments[0];
        write(s, rpc);
        s.length = (how & 4) != 0 ? in.u32() : static_cast<std::uint32_t>(rpc.size());
        h.proc = Proc::kNomsg;
        h.reply_chunk.emplace().segments.push_back(s);
      }
      if ((how & 16) != 0) {
        h.write_list = call.write_list;
        for (WriteChunk& chunk : h.write_list) {
          if (chunk.segments.empty()) continue;  // of a result that is wanted in line
          Segment& s = chunk.segments[0];
          const std::uint32_t written = (how & 32) != 0 ? in.u32() : std::min<std::uint32_t>(in.u16(), s.length);
          write(s, iwarp::test::pattern(std::min<std::uint32_t>(written, s.length)));
          s.length = written;
        }
      }
      if (options_.draft_2005.enabled && (how & 128) != 0) {  // in a Read chunk
        peer_.fill_read_memory(rpc);
        h.proc = Proc::kNomsg;
        h.reply_chunk.reset();
        h.read_list.push_back({0, peer_.to_read(rpc.size())});
      }
      const auto& first = call.reply_chunk ? call.reply_chunk->segments : SmallVector<Segment, 4>{};
      if (!first.empty() && (how & 8) != 0) invalidated = invalidate(first[0].handle);
    }
    arrive(client_, encode(h, h.proc == Proc::kMsg ? rpc : Bytes{}), invalidated);
  }

  // RDMA Write by the server, if the client still allows it.
  void write(const Segment& to, const Bytes& data) {
    const auto region = client_.regions.find(raw(to.handle));
    if (region == client_.regions.end() || region->second.access != RemoteAccess::kWrite) return;
    FUZZ_CHECK(region->second.base == to.offset && region->second.memory.size() == to.length);
    std::copy_n(data.begin(), std::min(data.size(), region->second.memory.size()), region->second.memory.begin());
  }

  // Send with Invalidate by the server, if the client allows it.
  [[nodiscard]] std::optional<Stag> invalidate(Stag handle) {
    const auto region = client_.regions.find(raw(handle));
    if (region == client_.regions.end() || !region->second.remote_invalidation) return std::nullopt;
    client_.regions.erase(region);
    return handle;
  }

  void answer_backward(Script& in, std::uint32_t which) {
    if (backward_.empty()) return;
    const std::size_t i = which % backward_.size();
    const Bytes rpc = rpc_message(in, backward_[i].xid, RpcDirection::kReply);
    if (auto message = buffer(rpc, BufferPool::Purpose::kBackward)) {
      if (requester_->reply_backward(backward_[i].token, std::move(*message)).ok()) {
        backward_.erase(backward_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  [[nodiscard]] std::optional<Buffer> buffer(const Bytes& content, BufferPool::Purpose purpose) {
    auto out = pool_->acquire(content.size(), purpose);
    if (out) std::copy(content.begin(), content.end(), out->bytes().begin());
    return out;
  }

  void drain() {
    while (auto event = requester_->poll_event()) {
      FUZZ_CHECK(!closed_);
      if (auto* reply = std::get_if<Requester::ReplyReceived>(&*event)) {
        FUZZ_CHECK(reply->message.headroom() >= kHeadroomBytes && reply->message.size() >= 8);
        FUZZ_CHECK(load_be<std::uint32_t>(reply->message.bytes()) == reply->xid);
        // The server cannot reach what was handed over.
        for (const auto& [stag, region] : client_.regions) {
          FUZZ_CHECK(!region.access || region.memory.data() != reply->message.bytes().data());
        }
        replies_.push_back(std::move(reply->message));
      } else if (auto* call = std::get_if<Requester::BackwardCall>(&*event)) {
        FUZZ_CHECK(call->message.headroom() >= kHeadroomBytes && call->message.size() >= 8);
        backward_.push_back(std::move(*call));
      } else {
        closed_ = std::holds_alternative<Requester::MustClose>(*event);
      }
    }
    while (auto option = requester_->poll_option()) {
      const auto* received = std::get_if<OptionReceived>(&*option);
      FUZZ_CHECK(received == nullptr || received->message.size() > 0);
    }
    check_inbox(server_, options_.highest_version, options_.draft_2005.enabled);
    for (const Bytes& message : server_.inbox) {
      const ParseResult result = Header::parse(message, kAnyHeader);
      const auto* parsed = std::get_if<ParsedHeader>(&result);
      if (parsed != nullptr && is_call(*parsed, message)) calls_[parsed->header.xid] = parsed->header;
    }
    server_.inbox.clear();
  }

  void finish() {
    client_.disconnect();
    drain();
    replies_.clear();
    backward_.clear();
    requester_.reset();
    for (std::size_t i = 0; i < BufferPool::kPurposes; ++i) {
      FUZZ_CHECK(pool_->in_use_bytes(static_cast<BufferPool::Purpose>(i)) == 0);
    }
  }

  RequesterOptions options_;
  std::uint32_t most_credits_ = options_.credits;
  FakeEndpoint client_{0x100};
  FakeEndpoint server_{0x900};
  PeerMemory peer_{server_};
  std::optional<BufferPool> pool_;
  std::optional<Requester> requester_;
  std::map<std::uint32_t, Header> calls_;  // the latest of each xid; their chunks are the client's own
  std::vector<Buffer> replies_;
  std::vector<Requester::BackwardCall> backward_;
  bool closed_ = false;
};

}  // namespace

void run_requester(Script script) {
  RequesterWorld(script).run(script);
}

}  // namespace iwarp::fuzz
