#include "iwarp/rpcrdma/transport_header.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <limits>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/xdr_padding.h"

namespace iwarp::rpcrdma {
namespace {

using Answer = ParseError::Answer;

constexpr std::uint32_t kAbsent = 0;
constexpr std::uint32_t kPresent = 1;

Segment read_segment(ReadCursor& in) {
  Segment out;
  out.handle = Stag{in.be<std::uint32_t>()};  // req: RFC8166-2.3.2-1 RFC8166-3.4.3-1 RFC8166-4.7-1
  out.length = in.be<std::uint32_t>();
  out.offset = in.be<std::uint64_t>();
  return out;
}

void write_segment(WriteCursor& out, const Segment& s) {
  out.be(raw(s.handle));
  out.be(s.length);
  out.be(s.offset);  // req: RFC8166-4.4.3-1
}

// XDR optional-data: reads the discriminant. Sets *why on anything but 0 and 1.
bool read_presence(ReadCursor& in, const char** why) {
  const auto word = in.be<std::uint32_t>();
  if (!in.ok()) *why = "chunk list truncated";
  if (in.ok() && word > kPresent) *why = "optional-data discriminant is neither 0 nor 1";
  return *why == nullptr && word == kPresent;
}

// Each list function returns nullptr, or why the list is bad.
const char* read_read_list(ReadCursor& in, const Limits& limits, ReadList& list) {
  const char* why = nullptr;
  while (read_presence(in, &why)) {  // req: RFC8166-4.7-3
    if (list.size() >= limits.max_read_segments) return "too many read segments";
    ReadSegment s;
    s.position = in.be<std::uint32_t>();  // req: RFC8166-4.7-2
    s.target = read_segment(in);
    if (!in.ok()) return "read segment truncated";
    if (s.position % 4 != 0) return "read chunk position is not a multiple of 4";  // req: RFC8166-3.4.5-4
    list.push_back(s);
  }
  return why;
}

const char* read_write_chunk(ReadCursor& in, const Limits& limits, WriteChunk& chunk) {
  const auto count = in.be<std::uint32_t>();  // req: RFC8166-4.7-4 RFC8166-3.4.6-1
  if (!in.ok()) return "write chunk truncated";
  if (count > in.remaining() / Segment::kSize) return "write chunk holds more segments than the message";
  if (count > limits.max_segments_per_chunk) return "too many segments in a write chunk";  // req: RFC8267-6.4.2-6
  chunk.segments.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) chunk.segments.push_back(read_segment(in));
  return nullptr;
}

// req: RFC8166-4.1.2-6 RFC8166-4.3-1 RFC8166-4.2.4-5 V2-4.2-6
const char* read_lists(ReadCursor& in, const Limits& limits, Header& h) {
  if (const char* why = read_read_list(in, limits, h.read_list)) return why;
  const char* why = nullptr;
  while (read_presence(in, &why)) {  // req: RFC8166-4.7-5
    if (h.write_list.size() >= limits.max_write_chunks) return "too many write chunks";
    WriteChunk chunk;
    if (const char* bad = read_write_chunk(in, limits, chunk)) return bad;
    h.write_list.push_back(std::move(chunk));
  }
  if (why != nullptr) return why;
  if (read_presence(in, &why)) why = read_write_chunk(in, limits, h.reply_chunk.emplace());  // req: RFC8166-4.7-6
  return why;
}

bool knows(const Dialect& dialect, std::uint32_t version) {
  return version >= kVersion1 && version <= dialect.highest();
}

// Returns nullptr, or why the body of an RDMA_OPTIONAL is bad. req: V2-4.2-10
const char* read_option(ReadCursor& in, OptionBody& option) {
  option.type = in.be<std::uint32_t>();
  const auto length = in.be<std::uint32_t>();
  if (!in.ok()) return "RDMA_OPTIONAL truncated";
  if (length > in.remaining()) return "rdma_optinfo is longer than the message";
  const ConstBytes info = in.take(length);
  option.info.assign(info.begin(), info.end());
  in.skip(-length % 4);
  return in.ok() ? nullptr : "the padding of rdma_optinfo is missing";
}

ParseResult parse_error_body(ReadCursor in, Header h, std::size_t message_size, const Dialect& dialect) {
  // Never answered, whatever is wrong with it. req: RFC8166-4.5-10 RFC8166-4.2.4-12
  const auto drop = [&](const char* why) { return ParseError{Answer::kDrop, h.xid, h.version, why}; };
  h.proc = Proc::kError;
  const auto code = in.be<std::uint32_t>();
  if (code == static_cast<std::uint32_t>(HeaderError::kVers)) {
    // This layout is the same in every version, so a peer of another one can say what it speaks. req: RFC8166-7-2
    h.error = {HeaderError::kVers, in.be<std::uint32_t>(), in.be<std::uint32_t>()};
  } else if (code == static_cast<std::uint32_t>(HeaderError::kChunk) && knows(dialect, h.version)) {
    h.error = {};  // 20 octets; peers of RFC 5666 and older append 32 more. req: RFC8166-4.1.2-11 D2005-4.2-13
  } else if (code == static_cast<std::uint32_t>(HeaderError::kInvalOption) && h.version == kVersion2 &&
             dialect.version_2) {
    h.error = {HeaderError::kInvalOption};  // req: V2-3.1-2 V2-4.2-9
  } else {
    return drop("RDMA_ERROR of an unknown kind");
  }
  if (!in.ok()) return drop("RDMA_ERROR truncated");
  return ParsedHeader{std::move(h), message_size};
}

void append(std::string& out, const char* format, auto... values) {
  char text[96];
  std::snprintf(text, sizeof text, format, values...);
  out += text;
}

void append_segment(std::string& out, const Segment& s) {
  append(out, "0x%" PRIx32 ":%" PRIu32 "@0x%" PRIx64, raw(s.handle), s.length, s.offset);
}

void append_chunk(std::string& out, const WriteChunk& chunk) {
  out += '[';
  for (const Segment& s : chunk.segments) {
    if (out.back() != '[') out += ' ';
    append_segment(out, s);
  }
  out += ']';
}

}  // namespace

const char* name(Proc proc) {
  switch (proc) {  // req: RFC8166-4.1.2-13
    case Proc::kMsg:
      return "RDMA_MSG";
    case Proc::kNomsg:
      return "RDMA_NOMSG";
    case Proc::kMsgp:
      return "RDMA_MSGP";
    case Proc::kDone:
      return "RDMA_DONE";
    case Proc::kError:
      return "RDMA_ERROR";
    case Proc::kOptional:
      return "RDMA_OPTIONAL";
  }
  return "RDMA_?";
}

std::uint64_t WriteChunk::length() const {
  std::uint64_t sum = 0;
  for (const Segment& s : segments) sum += s.length;  // req: RFC8166-3.4.4-2
  return sum;
}

std::uint64_t read_chunk_length(const ReadList& list, std::uint32_t position) {
  std::uint64_t sum = 0;
  for (const ReadSegment& s : list) {
    if (s.position == position) sum += s.target.length;  // req: RFC8166-4.3.1-1
  }
  return sum;
}

ParseResult Header::parse(ConstBytes message, const Limits& limits) {
  ReadCursor in(message);
  Header h;
  h.xid = in.be<std::uint32_t>();  // req: RFC8166-4.2-1 RFC8166-4.2-2
  h.version = in.be<std::uint32_t>();
  h.credits = in.be<std::uint32_t>();
  const auto proc = in.be<std::uint32_t>();
  const auto error = [&](Answer answer, const char* why) { return ParseError{answer, h.xid, h.version, why}; };
  if (!in.ok()) return ParseError{Answer::kDrop, 0, 0, "shorter than the fixed words"};
  const Dialect& dialect = limits.dialect;
  const auto is = [proc](Proc p) { return proc == static_cast<std::uint32_t>(p); };
  if (is(Proc::kError)) return parse_error_body(in, std::move(h), message.size(), dialect);
  const bool known = knows(dialect, h.version);
  // Before its length is looked at: four words are all of it. req: RFC8166-4.6.2-2 RFC8166-4.2.4-3
  if (known && is(Proc::kDone)) {
    if (!dialect.draft_2005 || h.version != kVersion1) {
      return ParseError{Answer::kDrop, h.xid, h.version, "RDMA_DONE", true};
    }
    h.proc = Proc::kDone;  // req: D2005-4.1-16
    return ParsedHeader{std::move(h), message.size()};
  }
  if (known && h.version == kVersion2 && is(Proc::kOptional)) {
    h.proc = Proc::kOptional;
    if (const char* why = read_option(in, h.option)) {
      return ParseError{Answer::kErrChunk, h.xid, h.version, why, false, true};
    }
    const std::size_t behind = message.size() - in.remaining();  // req: V2-4.2-15
    return ParsedHeader{std::move(h), behind};
  }
  if (message.size() < kMinHeaderBytes) return error(Answer::kDrop, "shorter than 28 octets");  // req: RFC8166-4.5-2
  // req: RFC8166-7-1 V2-5.2-1 V2-3-1
  if (!known) return error(Answer::kErrVers, "unsupported version");  // req: RFC8166-4.5.1-1
  if (is(Proc::kMsgp)) {
    if (!dialect.draft_2005 || h.version != kVersion1)
      return error(Answer::kErrChunk, "RDMA_MSGP");                // req: RFC8166-4.6.1-2
    h.padding = {in.be<std::uint32_t>(), in.be<std::uint32_t>()};  // req: D2005-4.1-14 D2005-4.2-11
    // req: RFC8166-4-3
  } else if (!is(Proc::kMsg) && !is(Proc::kNomsg)) {
    return error(Answer::kErrChunk, "unknown rdma_proc");  // req: RFC8166-4.5.2-1
  }
  h.proc = static_cast<Proc>(proc);
  // req: RFC8166-4.1.2-7
  if (const char* why = read_lists(in, limits, h)) return error(Answer::kErrChunk, why);  // req: RFC8166-4.5.2-4
  if (h.proc == Proc::kNomsg && !h.has_chunks()) {
    return error(Answer::kErrChunk,
                 "RDMA_NOMSG without any chunk");  // req: RFC8166-4.5.2-2 RFC8166-4.2.4-7 RFC8166-4.2.4-8
  }
  // req: RFC8166-4.2.4-1 RFC8166-3.2-1 V2-4.2-14 V2-4.2-16
  const std::size_t payload_offset = message.size() - in.remaining();
  return ParsedHeader{std::move(h), payload_offset};
}

namespace {

void write_zeros(WriteCursor& w, std::size_t octets) {
  for (; octets > 0; --octets) w.be(std::uint8_t{0});
}

}  // namespace

std::size_t Header::encoded_size() const {
  // req: RFC8166-4.2.4-10
  if (proc == Proc::kError) {
    if (error.code == HeaderError::kVers) return kErrVersBytes;
    return kErrChunkBytes + (draft_2005 ? kErrChunkExtraBytes : 0);
  }
  if (proc == Proc::kDone) return kDoneBytes;
  if (proc == Proc::kOptional) return kDoneBytes + 8 + static_cast<std::size_t>(padded(option.info.size()));
  std::size_t size = kMinHeaderBytes + read_list.size() * (4 + ReadSegment::kSize);  // req: RFC8166-4.7-7
  for (const WriteChunk& c : write_list) size += 4 + c.encoded_size();
  if (reply_chunk) size += reply_chunk->encoded_size();
  if (proc == Proc::kMsgp) size += 8;
  return size;
}

std::size_t Header::write_to(MutBytes out) const {
  // req: RFC8166-4.6.1-1 RFC8166-4.6.2-1 RFC8166-4.1.2-8
  if ((proc == Proc::kMsgp || proc == Proc::kDone) && !draft_2005) return 0;
  if (proc == Proc::kOptional && version != kVersion2) return 0;
  if (out.size() < encoded_size()) return 0;
  WriteCursor w(out);
  w.be(xid);  // req: RFC8166-4-1
  w.be(version);
  w.be(credits);
  w.be(static_cast<std::uint32_t>(proc));
  if (proc == Proc::kError) {
    w.be(static_cast<std::uint32_t>(error.code));
    if (error.code == HeaderError::kVers) {
      w.be(error.version_low);
      w.be(error.version_high);
    } else if (draft_2005) {
      write_zeros(w, kErrChunkExtraBytes);  // req: D2005-4.2-13
    }
    return w.written();
  }
  if (proc == Proc::kDone) return w.written();
  if (proc == Proc::kOptional) {
    w.be(option.type);
    w.be(static_cast<std::uint32_t>(option.info.size()));
    w.bytes(option.info);
    write_zeros(w, static_cast<std::size_t>(padded(option.info.size())) - option.info.size());
    return w.written();
  }
  if (proc == Proc::kMsgp) {
    w.be(padding.align);
    w.be(padding.threshold);
  }
  const auto write_chunk = [&w](const WriteChunk& chunk) {
    w.be(kPresent);
    w.be(static_cast<std::uint32_t>(chunk.segments.size()));
    for (const Segment& s : chunk.segments) write_segment(w, s);
  };
  for (const ReadSegment& s : read_list) {  // req: RFC8166-4.1.2-3
    w.be(kPresent);
    w.be(s.position);
    write_segment(w, s.target);
  }
  w.be(kAbsent);
  for (const WriteChunk& c : write_list) write_chunk(c);  // req: RFC8166-4.3.2-1
  w.be(kAbsent);
  if (reply_chunk) {
    write_chunk(*reply_chunk);
  } else {
    w.be(kAbsent);
  }
  return w.written();
}

std::string Header::to_string() const {
  std::string out;
  append(out, "%s(xid=0x%" PRIx32 ", vers=%" PRIu32 ", credits=%" PRIu32, name(proc), xid, version, credits);
  if (proc == Proc::kError) {
    if (error.code == HeaderError::kVers) {
      append(out, ", ERR_VERS, low=%" PRIu32 ", high=%" PRIu32 ")", error.version_low, error.version_high);
      return out;
    }
    if (error.code == HeaderError::kInvalOption) return out + ", INVAL_OPTION)";
    return out + (version == kVersion2 ? ", BAD_HEADER)" : ", ERR_CHUNK)");
  }
  if (proc == Proc::kDone) return out + ')';
  if (proc == Proc::kOptional) {
    append(out, ", type=%" PRIu32 ", info=%zu octets)", option.type, option.info.size());
    return out;
  }
  if (proc == Proc::kMsgp) append(out, ", align=%" PRIu32 ", thresh=%" PRIu32, padding.align, padding.threshold);
  out += ", reads=[";
  for (const ReadSegment& s : read_list) {
    if (out.back() != '[') out += ' ';
    append(out, "%" PRIu32 "/", s.position);
    append_segment(out, s.target);
  }
  out += "], writes=[";
  for (const WriteChunk& c : write_list) {
    if (out.back() == ']') out += ' ';
    append_chunk(out, c);
  }
  out += "], reply=";
  if (reply_chunk) {
    append_chunk(out, *reply_chunk);
  } else {
    out += '-';
  }
  return out + ')';
}

namespace {

// Its octets do not all have a tagged offset below 2^64 (RFC 5041 s5.1).
bool wraps(const Segment& s) {
  return s.length > 0 && s.offset > std::numeric_limits<std::uint64_t>::max() - (s.length - 1);
}

bool wraps(const WriteChunk& c) {
  return std::any_of(c.segments.begin(), c.segments.end(), [](const Segment& s) { return wraps(s); });
}

}  // namespace

std::optional<ParseError> check_call(const Header& h) {
  const auto bad = [&](const char* why) { return ParseError{Answer::kErrChunk, h.xid, h.version, why}; };
  if (h.proc == Proc::kError || h.proc == Proc::kDone || h.proc == Proc::kOptional) {
    return ParseError{Answer::kDrop, h.xid, h.version, "neither RDMA_MSG nor RDMA_NOMSG"};
  }
  bool position_zero = false;
  bool wrapping = h.reply_chunk && wraps(*h.reply_chunk);
  for (const WriteChunk& c : h.write_list) wrapping |= wraps(c);
  for (const ReadSegment& s : h.read_list) {
    position_zero |= s.position == 0;
    wrapping |= wraps(s.target);
  }
  if (wrapping) return bad("segment with a tagged offset that wraps");
  // A Write list or Reply chunk carries nothing towards a Responder. req: RFC8166-4.2.4-9 RFC8166-3.5.3-3
  // req: RFC8166-3.5.3-5
  if (h.proc == Proc::kNomsg && !position_zero) return bad("RDMA_NOMSG Call without a Position-Zero Read chunk");
  if (h.proc != Proc::kNomsg && position_zero) return bad("RDMA_MSG Call with a Position-Zero Read chunk");
  return std::nullopt;
}

std::optional<ParseError> check_reply(const Header& h, const Dialect& dialect) {
  const auto bad = [&](const char* why) {
    return ParseError{Answer::kDrop, h.xid, h.version, why};
  };  // req: RFC8166-4.5-4
  if (h.proc == Proc::kError) return std::nullopt;
  if (h.proc == Proc::kDone || h.proc == Proc::kOptional) return bad("neither RDMA_MSG nor RDMA_NOMSG");
  if (!h.read_list.empty() && (!dialect.draft_2005 || h.version != kVersion1)) {
    return bad("Reply with a Read list");  // req: RFC8166-4.3.1-3 RFC8166-3.1-1
  }
  const bool by_read =
      std::any_of(h.read_list.begin(), h.read_list.end(), [](const auto& s) { return s.position == 0; });
  const bool by_write = h.reply_chunk && h.reply_chunk->length() > 0;
  if (h.proc == Proc::kNomsg && by_read == by_write) return bad("RDMA_NOMSG Reply without a used Reply chunk");
  if (h.proc != Proc::kNomsg && by_read) return bad("RDMA_MSG Reply with a Position-Zero Read chunk");
  return std::nullopt;
}

bool xid_matches(const Header& header, ConstBytes payload) {
  const auto first = FixedView<4>::of(payload);
  return first && first->be<std::uint32_t, 0>() == header.xid;  // req: RFC8166-4.5.2-3 RFC8166-4.2.1-1
}

Header make_err_vers(std::uint32_t xid, std::uint32_t version, std::uint32_t credits, const Dialect& dialect) {
  Header h = make_err_chunk(xid, version, credits);
  h.error = {HeaderError::kVers, kVersion1, dialect.highest()};
  return h;
}

Header make_err_chunk(std::uint32_t xid, std::uint32_t version, std::uint32_t credits) {
  Header h;
  h.xid = xid;          // req: RFC8166-4.5-5
  h.version = version;  // req: RFC8166-4.5-6 V2-4.2-18
  h.credits = credits;
  h.proc = Proc::kError;  // req: RFC8166-4.5-7 RFC8166-4.2.4-4
  h.error = {};           // req: RFC8166-4.5-8
  return h;
}

Header make_inval_option(std::uint32_t xid, std::uint32_t credits) {
  Header h = make_err_chunk(xid, kVersion2, credits);
  h.error = {HeaderError::kInvalOption};
  return h;
}

std::optional<Header> make_answer(const ParseError& error, std::uint32_t credits, const Dialect& dialect) {
  switch (error.answer) {
    case Answer::kDrop:
      return std::nullopt;
    case Answer::kErrVers:
      return make_err_vers(error.xid, error.version, credits, dialect);
    case Answer::kErrChunk: {
      Header h = make_err_chunk(error.xid, error.version, credits);
      h.draft_2005 = dialect.draft_2005 && error.version == kVersion1;
      return h;
    }
  }
  return std::nullopt;
}

}  // namespace iwarp::rpcrdma
