#include "iwarp/trace/rpc_view.h"

#include "iwarp/rpcrdma/private_data.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "iwarp/trace/rpc_pdu.h"

namespace iwarp::trace {
namespace {

using rpcrdma::Header;
using rpcrdma::Proc;

constexpr unsigned kMaxGuesses = 4;
constexpr std::size_t kCallBytes = 384;  // memory of a Call with its SeenRpc, about

// An observer knows all that any two ends may have agreed on.
constexpr rpcrdma::Limits kAll{.dialect = {.version_2 = true, .draft_2005 = true}};

bool in_line(const Header& h) {
  return h.proc == Proc::kMsg || h.proc == Proc::kMsgp;
}

// Strict, because a wrong guess mislabels everything that follows.
bool looks_like_rpc(const Header& h, ConstBytes payload) {
  if (in_line(h)) return rpcrdma::xid_matches(h, payload) && rpcrdma::rpc_direction(payload).has_value();
  return h.proc == Proc::kNomsg && h.has_chunks();
}

// What `seen` of `bytes` octets is that could not be read: nobody's fault if the capture lacks the rest.
RpcView::Event unreadable(std::string_view layer, const char* why, std::uint64_t seen, std::uint64_t bytes) {
  RpcView::Event e;
  e.record.layer = layer;
  e.malformed = e.record.error = seen >= bytes;
  e.record.pdu = Pdu(e.malformed ? "Malformed" : "Cut");
  e.record.pdu.number("bytes", bytes);
  if (e.malformed) {
    e.record.pdu.text("why", why);
  } else {
    e.record.pdu.number("captured", seen);
  }
  return e;
}

constexpr const char* kNoRpc = "neither an RPC Call nor a Reply";

// Whether a header without a message in line is a Call's: a Reply has no Read list (RFC 8166 s3.4.4), unless it is one
// of the draft of 2005: its Call is known then.
bool is_long_call(const Header& h) {
  return h.proc == Proc::kNomsg && !h.read_list.empty();
}

DataPlaces places_of(const rpcrdma::ParsedHeader& parsed, rpcrdma::RpcDirection direction) {
  const Header& h = parsed.header;
  DataPlaces out;
  for (const rpcrdma::ReadSegment& s : h.read_list) {
    if (s.position != 0) out.read_positions.push_back(s.position);
  }
  if (direction == rpcrdma::RpcDirection::kReply) {
    for (const rpcrdma::WriteChunk& c : h.write_list) {
      // Beside Read chunks those that were offered in vain come back as well.
      out.write_chunks.push_back(h.read_list.empty() ? !c.is_empty() : c.length() > 0);
    }
  }
  if (h.proc == Proc::kMsgp) {
    out.padding = h.padding;
    out.header_bytes = parsed.payload_offset;
  }
  return out;
}

}  // namespace

RpcView::RpcView(RpcViewOptions options) : options_(std::move(options)) {
  if (options_.book == nullptr) options_.book = std::make_shared<CallBook>();
}

std::optional<Pdu> RpcView::on_private_data(ConstBytes private_data) {
  const auto found = rpcrdma::PrivateData::find(private_data);
  if (!found) return std::nullopt;
  if (options_.guess == RpcGuess::kUnknown) options_.guess = RpcGuess::kYes;
  Pdu pdu("PrivateData");
  pdu.number("send", found->send_bytes).number("receive", found->receive_bytes);
  return pdu.number("remote_invalidation", found->remote_invalidation ? 1 : 0);
}

std::optional<rpcrdma::ParsedHeader> RpcView::parse(const Message& m, Events& events) {
  const rpcrdma::ParseResult result = Header::parse(m.head, kAll);
  const auto* parsed = std::get_if<rpcrdma::ParsedHeader>(&result);
  if (options_.guess == RpcGuess::kUnknown) {
    if (parsed == nullptr || !looks_like_rpc(parsed->header, ConstBytes(m.head).subspan(parsed->payload_offset))) {
      if (++guesses_ == kMaxGuesses) options_.guess = RpcGuess::kNo;
      return std::nullopt;
    }
    options_.guess = RpcGuess::kYes;
  }
  if (parsed != nullptr) return *parsed;
  events.push_back(unreadable("rpcrdma", std::get<rpcrdma::ParseError>(result).why, m.head.size(), m.length));
  return std::nullopt;
}

RpcView::Events RpcView::on_send(Direction d, const Message& m, const When& when) {
  Events events;
  if (options_.guess == RpcGuess::kNo) return events;
  const auto parsed = parse(m, events);
  if (!parsed) return events;
  const Header& h = parsed->header;
  const ConstBytes payload = ConstBytes(m.head).subspan(parsed->payload_offset);
  Event& e = events.emplace_back();
  e.record.layer = "rpcrdma";
  e.record.pdu = header_pdu(h);
  e.record.xid = h.xid;
  if (h.proc == Proc::kError) {
    on_error(h, d, events);
    return events;
  }
  if (h.proc == Proc::kDone) on_done(h, d, when, events);
  if (h.proc == Proc::kDone || h.proc == Proc::kOptional) return events;
  const auto direction = in_line(h)                                                  ? rpcrdma::rpc_direction(payload)
                         : is_long_call(h) && !calls_.contains({opposite(d), h.xid}) ? rpcrdma::RpcDirection::kCall
                                                                                     : rpcrdma::RpcDirection::kReply;
  if (!direction) {
    events.push_back(unreadable("rpc", kNoRpc, payload.size(), m.length - parsed->payload_offset));
  } else if (*direction == rpcrdma::RpcDirection::kCall) {
    on_call(*parsed, d, m, payload, when, events);
  } else {
    on_reply(*parsed, d, m, payload, when, events);
  }
  return events;
}

void RpcView::on_call(const rpcrdma::ParsedHeader& parsed, Direction d, const Message& m, ConstBytes payload,
                      const When& when, Events& events) {
  const Header& h = parsed.header;
  if (calls_.size() >= kMaxCalls) forget();
  Call call;
  call.rpc = std::make_shared<SeenRpc>();
  call.rpc->xid = h.xid;
  call.rpc->caller = d;
  call.rpc->sent = when;
  call.rpc->send_bytes = m.length;
  call.places = places_of(parsed, rpcrdma::RpcDirection::kCall);
  chunks_.add(h, call.rpc);
  events.back().record.rpc = call.rpc;
  if (in_line(h)) {
    add_call(call, payload, m.length - (m.head.size() - payload.size()), when, events);
  }
  keep({d, h.xid}, std::move(call));
}

std::size_t RpcView::Call::memory() const {
  return kCallBytes + places.read_positions.capacity() * sizeof(std::uint32_t);
}

void RpcView::keep(const Key& key, Call call) {
  (void)take(key);  // a Call with its xid that was never answered
  call_bytes_ += call.memory();
  calls_.emplace(key, std::move(call));
}

std::optional<RpcView::Call> RpcView::take(const Key& key) {
  auto node = calls_.extract(key);
  if (node.empty()) return std::nullopt;
  call_bytes_ -= node.mapped().memory();
  return std::move(node.mapped());
}

void RpcView::forget() {
  forgotten_ += calls_.size();
  calls_.clear();
  offered_.clear();
  call_bytes_ = 0;
  chunks_.clear();
}

void RpcView::on_reply(const rpcrdma::ParsedHeader& parsed, Direction d, const Message& m, ConstBytes payload,
                       const When& when, Events& events) {
  const Header& h = parsed.header;
  const DataPlaces places = places_of(parsed, rpcrdma::RpcDirection::kReply);
  std::shared_ptr<SeenRpc> rpc;
  if (auto call = take({opposite(d), h.xid})) {
    rpc = call->rpc;
    rpc->send_bytes += m.length;
    events.back().record.rpc = rpc;
    // A Call whose chunk was not read to its end: what was seen of it must do.
    if (!rpc->known) add_call_of_chunk(*call, when, events);
  }
  if (in_line(h)) {
    add_reply(rpc, places, payload, m.length - (m.head.size() - payload.size()), when, events);
  } else if (rpc != nullptr && h.reply_chunk) {
    const ConstBytes head = chunks_.reply_head(*rpc);
    const std::uint64_t bytes = h.reply_chunk->length();
    // What was collected is no Reply when its xid is another one.
    const bool is_reply = rpcrdma::rpc_xid(head) == h.xid;
    const auto n = is_reply ? static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), bytes)) : 0;
    add_reply(rpc, places, head.first(n), bytes, when, events);
  }
  if (rpc != nullptr) {
    if (rpc->known) options_.book->reply(options_.ends, *rpc);
    chunks_.remove(*rpc);
    if (h.read_list.empty()) return;
    chunks_.add_reply(h, rpc);
    if (offered_.size() >= kMaxCalls) offered_.clear();
    offered_[{rpc->caller, rpc->xid}] = {rpc, when, places, !in_line(h)};
  }
}

// The client has read what the Reply offered: only now all of it was seen.
void RpcView::on_done(const Header& h, Direction d, const When& when, Events& events) {
  const auto node = offered_.extract(Key{d, h.xid});
  if (node.empty()) return;
  const Offer& offer = node.mapped();
  Record& r = events.back().record;
  r.rpc = offer.rpc;
  offer.rpc->send_bytes += rpcrdma::kDoneBytes;
  if (offer.sent.frame != 0) r.pdu.number("reply_in", offer.sent.frame);
  r.pdu.milliseconds("kept_ms", std::chrono::duration_cast<std::chrono::microseconds>(when.at - offer.sent.at).count());
  const ConstBytes head = chunks_.reply_head(*offer.rpc);
  if (offer.long_reply && rpcrdma::rpc_xid(head) == h.xid)
    add_reply(offer.rpc, offer.places, head, chunks_.reply_bytes(*offer.rpc), when, events);
  chunks_.remove(*offer.rpc);
}

void RpcView::on_error(const Header& h, Direction d, Events& events) {
  Record& r = events.back().record;
  r.error = true;
  const auto call = take({opposite(d), h.xid});
  if (!call) return;
  r.rpc = call->rpc;
  if (r.rpc->known) options_.book->reply(options_.ends, *r.rpc);
  chunks_.remove(*r.rpc);
}

// What was collected is no Call when its xid is another one.
void RpcView::add_call_of_chunk(Call& call, const When& when, Events& events) {
  const ConstBytes head = chunks_.call_head(*call.rpc);
  if (rpcrdma::rpc_xid(head) == call.rpc->xid) add_call(call, head, chunks_.call_bytes(*call.rpc), when, events);
}

void RpcView::add_call(Call& call, ConstBytes message, std::uint64_t bytes, const When& when, Events& events) {
  const bool in_chunk = call.rpc->sent.frame != when.frame || call.rpc->sent.at != when.at;
  auto pdu = call_pdu(message, bytes, call.places, options_.config_program, *call.rpc);
  if (!pdu) {
    events.push_back(unreadable("rpc", kNoRpc, message.size(), bytes));
    return;
  }
  Event e;
  e.record.layer = "rpc";
  e.record.xid = call.rpc->xid;
  e.record.rpc = call.rpc;
  if (in_chunk && call.rpc->sent.frame != 0) pdu->number("header_in", call.rpc->sent.frame);
  if (const auto earlier = options_.book->call(options_.ends, options_.connection, *call.rpc)) {
    e.record.retransmission = e.record.error = true;
    pdu->number("again", 1);
    if (earlier->frame != 0) pdu->number("first_in", earlier->frame);
    if (earlier->connection != options_.connection) pdu->word("first_on", earlier->connection);
  }
  e.record.pdu = std::move(*pdu);
  events.push_back(std::move(e));
}

void RpcView::add_reply(const std::shared_ptr<SeenRpc>& rpc, const DataPlaces& places, ConstBytes message,
                        std::uint64_t bytes, const When& when, Events& events) {
  auto reply = reply_pdu(message, bytes, places, rpc.get(), when);
  Event e;
  if (reply) {
    e.record.layer = "rpc";
    e.record.pdu = std::move(reply->pdu);
    e.record.error = reply->error;
    e.record.xid = rpcrdma::rpc_xid(message);
  } else {
    e = unreadable("rpc", kNoRpc, message.size(), bytes);
    if (rpc != nullptr) e.record.xid = rpc->xid;
  }
  e.record.rpc = rpc;
  if (rpc != nullptr) e.record.latency = when.at - rpc->sent.at;
  events.push_back(std::move(e));
}

std::shared_ptr<const SeenRpc> RpcView::on_write(Direction d, const Message& m) {
  return chunks_.on_write(d, m);
}

std::shared_ptr<const SeenRpc> RpcView::on_read_request(Direction d, const rdmap::ReadRequest& r) {
  return chunks_.on_read_request(d, r);
}

RpcView::Read RpcView::on_read_response(Direction d, const Message& m, const When& when) {
  Read out;
  const std::shared_ptr<SeenRpc> rpc = chunks_.on_read_response(d, m);
  out.rpc = rpc;
  if (rpc == nullptr || rpc->known || chunks_.call_bytes(*rpc) == 0 || !chunks_.call_is_read(*rpc)) return out;
  const auto call = calls_.find({rpc->caller, rpc->xid});
  if (call == calls_.end() || call->second.rpc != rpc) return out;
  add_call_of_chunk(call->second, when, out.events);
  return out;
}

}  // namespace iwarp::trace
