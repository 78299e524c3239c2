#include "tests/fuzz/rpc_messages.h"

#include <algorithm>

#include "iwarp/rpcrdma/config_rdma.h"
#include "iwarp/rpcrdma/padding.h"

namespace iwarp::fuzz {

using namespace rpcrdma;

PeerMemory::PeerMemory(FakeEndpoint& peer) {
  for (const std::size_t n : {9000U, 100U, 5U}) {
    read_.emplace_back(peer, iwarp::test::pattern(n), RemoteAccess::kRead);
    write_.emplace_back(peer, Bytes(n), RemoteAccess::kWrite);
  }
}

Segment PeerMemory::segment(Script& in, bool for_reading) const {
  const std::uint8_t which = in.u8(), size = in.u8();
  const std::vector<Exposed>& regions = (which & 0x80) == 0 ? for_reading ? read_ : write_
                                        : for_reading       ? write_
                                                            : read_;
  const Exposed& region = regions[which % regions.size()];
  const std::size_t all = region.bytes.size();
  Segment s = region.segment(0, size < 64 ? std::min<std::size_t>(size, all) : size < 128 ? all : in.u16() % (all + 2));
  if (size >= 240) s = {Stag{in.u32()}, in.u32(), in.take<std::uint64_t>()};
  return s;
}

void PeerMemory::fill_read_memory(ConstBytes content) {
  for (Exposed& e : read_) std::copy_n(content.begin(), std::min(content.size(), e.bytes.size()), e.bytes.begin());
}

Segment PeerMemory::to_read(std::size_t octets) const {
  return read_[0].segment(0, std::min(octets, read_[0].bytes.size()));
}

Bytes rpc_message(Script& in, std::uint32_t xid, RpcDirection direction) {
  const std::uint8_t kind = in.u8(), changes = in.u8();
  const std::uint32_t n = in.u16() % 5000;
  const auto content = [n] { return iwarp::test::pattern(n); };
  Bytes out;
  if (direction == RpcDirection::kCall) {
    switch (kind % 8) {
      case 0:
        out = kind < 128 ? null_call(xid) : rpc_call(xid, kConfigProgram, 1, 1, words({in.u32(), in.u32(), in.u8()}));
        break;
      case 1:
        out = getattr_call(xid);
        break;
      case 2:
        out = read_call(xid, n);
        break;
      case 3:
        out = write_call_head(xid, n);
        break;
      case 4:
        out = write_call(xid, content());
        break;
      case 5:
        out = readdir_call(xid);
        break;
      case 6:  // COMPOUND: tag, minor version, READ or WRITE with an all-zero stateid
        out = rpc_call(xid, kNfs, 4, 1, words({0, 1, 2, 25, 0, 0, 0, 0, 0, 0, n, 38, 0, 0, 0, 0, 0, 0, 2, n}));
        break;
      case 7: {
        const auto raw = in.bytes(in.u8());
        out = words({xid, 0}) + Bytes(raw.begin(), raw.end());
        break;
      }
    }
  } else {
    switch (kind % 6) {
      case 0:
        out = rpc_reply(xid);
        break;
      case 1:
        out = read_reply(xid, content());
        break;
      case 2:
        out = read_reply_head(xid, n);
        break;
      case 3:
        out = read_error(xid);
        break;
      case 4:  // COMPOUND: status, tag, READ
        out = rpc_reply(xid, words({0, 0, 1, 25, 0, 1}) + opaque(content()));
        break;
      case 5: {
        const auto raw = in.bytes(in.u8());
        out = words({xid, 1}) + Bytes(raw.begin(), raw.end());
        break;
      }
    }
  }
  for (std::uint8_t i = 0; i < changes % 4; ++i) {
    const std::size_t at = in.u8();
    if (at < out.size()) out[at] = std::byte{in.u8()};
  }
  if (changes >= 224) out.resize(std::min<std::size_t>(out.size(), in.u8()));
  return out;
}

Header made_header(Script& in, std::uint32_t xid, const PeerMemory& memory) {
  const std::uint8_t shape = in.u8(), counts = in.u8();
  Header h = header(xid, Proc::kMsg, (shape & 1) != 0 ? in.u32() : 8);
  if ((shape & 2) != 0) h.proc = Proc::kNomsg;
  if ((shape & 16) != 0) h.version = kVersion2;
  if ((shape & 4) != 0) {
    h.proc = Proc::kError;
    h.error = {};
    if ((counts & 1) != 0) {
      h.error = {HeaderError::kVers, (counts & 4) != 0 ? in.u32() : 1,
                 (counts & 8) != 0 ? in.u32() : 1U + (counts >> 7)};
    } else if ((counts & 2) != 0) {
      h.version = kVersion2;
      h.error = {HeaderError::kInvalOption};
    }
    return h;
  }
  if ((shape & 48) == 48) {
    h.proc = Proc::kOptional;
    const auto info = in.bytes(in.u8());
    h.option = {in.u32(), {info.begin(), info.end()}};
    return h;
  }
  constexpr std::uint8_t kPadded = 64, kDone = 128;
  const std::uint8_t of_2005 = shape & (kPadded | kDone);
  h.draft_2005 = of_2005 == kPadded || of_2005 == kDone;
  if (of_2005 == kDone) {
    h.proc = Proc::kDone;
    return h;
  }
  if (of_2005 == kPadded) {
    const std::uint8_t align = in.u8();
    h.proc = Proc::kMsgp;
    h.padding = {align < 240 ? std::uint32_t{1} << align % 16 : in.u32(), in.flag() ? in.u32() : 1024};
  }
  for (int i = 0; i < (counts & 3); ++i) {
    const std::uint32_t position = (shape & 8) != 0 ? 0 : in.u8() * 4;
    h.read_list.push_back({position, memory.segment(in, true)});
  }
  for (int i = 0; i < (counts >> 2 & 3); ++i) {
    WriteChunk chunk;
    for (int j = in.u8() % 4; j > 0; --j) chunk.segments.push_back(memory.segment(in, false));
    h.write_list.push_back(std::move(chunk));
  }
  if ((counts & 16) != 0) {
    WriteChunk& chunk = h.reply_chunk.emplace();
    for (int j = counts >> 6; j > 0; --j) chunk.segments.push_back(memory.segment(in, false));
  }
  return h;
}

Bytes encoded(const Header& header, const Bytes& rpc) {
  if (header.proc == Proc::kMsg) return encode(header, rpc);
  if (header.proc != Proc::kMsgp) return encode(header);
  DdpItems items;
  ArgumentWalker walker(rpc);
  for (auto item = walker.next(); item && items.size() < kMaxPaddedItems; item = walker.next()) {
    if (item->in_message) items.push_back(*item);
  }
  constexpr std::size_t kSend = 4096;
  const auto layout = good_padding(header.padding)
                          ? plan_padding(rpc.size(), {items.data(), items.size()}, header.encoded_size(),
                                         header.padding.align, header.padding.threshold, kSend)
                          : std::nullopt;
  if (!layout) return encode(header, rpc);
  Header padded = header;
  padded.padding = layout->padding;
  Bytes out(layout->padded_bytes);
  return write_padded(rpc, *layout, out) ? encode(padded, out) : encode(header, rpc);
}

void arrive(FakeEndpoint& at, const Bytes& message, std::optional<Stag> invalidated) {
  if (at.broken) return;
  if (at.receives.empty() || at.receives.front().second.bytes.size() < message.size()) {
    at.disconnect();
  } else {
    at.receive(message, invalidated);
  }
}

void check_inbox(FakeEndpoint& peer, std::uint32_t highest, bool draft_2005) {
  for (const Bytes& message : peer.inbox) {
    const ParseResult result = Header::parse(message, kAnyHeader);
    const auto* parsed = std::get_if<ParsedHeader>(&result);
    // An error message repeats the version of what it answers.
    FUZZ_CHECK(parsed != nullptr || load_be<std::uint32_t>(ConstBytes(message).subspan(12, 4)) == 4);
    if (parsed == nullptr || parsed->header.proc == Proc::kError) continue;
    FUZZ_CHECK(parsed->header.version >= kVersion1 && parsed->header.version <= highest);
    FUZZ_CHECK(draft_2005 || (parsed->header.proc != Proc::kMsgp && parsed->header.proc != Proc::kDone));
    if (parsed->header.proc != Proc::kMsg && parsed->header.proc != Proc::kMsgp) continue;
    FUZZ_CHECK(xid_matches(parsed->header, ConstBytes(message).subspan(parsed->payload_offset)));
  }
}

bool is_call(const ParsedHeader& parsed, ConstBytes message) {
  const Header& h = parsed.header;
  if (h.proc == Proc::kNomsg) return !h.read_list.empty();
  const bool carries = h.proc == Proc::kMsg || h.proc == Proc::kMsgp;
  return carries && rpc_direction(message.subspan(parsed.payload_offset)) == RpcDirection::kCall;
}

}  // namespace iwarp::fuzz
