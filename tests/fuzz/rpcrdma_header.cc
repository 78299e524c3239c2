// RPC-over-RDMA transport header (RFC 8166 s4, version 2, the draft of 2005): any octets parse to a header that writes
// to the same header again, or to an error whose answer parses; counts never exceed the limits. The same for the
// private data of RFC 8797.
//
// Input: limits (3 octets, 0 means the default; the first two bits of the third are the dialect) | the message.
#include "iwarp/rpcrdma/transport_header.h"

#include "iwarp/rpcrdma/private_data.h"
#include "tests/fuzz/check.h"
#include "tests/support/hex.h"

namespace iwarp::fuzz {
namespace {

using test::Bytes;
using namespace rpcrdma;

void check_limits(const Header& h, const Limits& limits) {
  FUZZ_CHECK(h.read_list.size() <= limits.max_read_segments);
  FUZZ_CHECK(h.write_list.size() <= limits.max_write_chunks);
  for (const WriteChunk& chunk : h.write_list) FUZZ_CHECK(chunk.segments.size() <= limits.max_segments_per_chunk);
  if (h.reply_chunk) FUZZ_CHECK(h.reply_chunk->segments.size() <= limits.max_segments_per_chunk);
}

void check_stable(const ParsedHeader& parsed, const Dialect& dialect, ConstBytes message) {
  Header h = parsed.header;
  h.draft_2005 = dialect.draft_2005;
  FUZZ_CHECK(parsed.payload_offset <= message.size());
  FUZZ_CHECK(!h.to_string().empty());
  Bytes written(h.encoded_size());
  FUZZ_CHECK(h.write_to(written) == written.size());
  const ParseResult again = Header::parse(written, {.max_read_segments = 1 << 20,
                                                    .max_write_chunks = 1 << 20,
                                                    .max_segments_per_chunk = 1 << 20,
                                                    .dialect = dialect});
  FUZZ_CHECK(std::holds_alternative<ParsedHeader>(again) && std::get<ParsedHeader>(again).header == parsed.header);
  // One octet less holds no header, and writing into it changes nothing.
  Bytes small(written.size() - 1, std::byte{0x5A});
  FUZZ_CHECK(h.write_to(small) == 0);
  FUZZ_CHECK(small == Bytes(small.size(), std::byte{0x5A}));
  if (h.proc == Proc::kError) return;
  FUZZ_CHECK(written.size() == parsed.payload_offset || h.proc == Proc::kNomsg || h.proc == Proc::kDone);
  (void)check_call(h);
  (void)check_reply(h, dialect);
  (void)xid_matches(h, message.subspan(parsed.payload_offset));
}

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  Limits limits;
  if (const std::size_t n = script.u8(); n != 0) limits.max_read_segments = n;
  if (const std::size_t n = script.u8(); n != 0) limits.max_write_chunks = n;
  const std::uint8_t third = script.u8();
  if ((third & 0x3F) != 0) limits.max_segments_per_chunk = third & 0x3F;
  limits.dialect = {.version_2 = (third & 0x80) != 0, .draft_2005 = (third & 0x40) != 0};
  const Bytes message(script.rest().begin(), script.rest().end());

  const ParseResult result = Header::parse(message, limits);
  if (const auto* parsed = std::get_if<ParsedHeader>(&result)) {
    check_limits(parsed->header, limits);
    check_stable(*parsed, limits.dialect, message);
  } else if (const auto answer = make_answer(std::get<ParseError>(result), 7, limits.dialect)) {
    Bytes written(answer->encoded_size());
    FUZZ_CHECK(answer->write_to(written) == written.size());
    const ParseResult told = Header::parse(written, limits);
    Header expected = *answer;
    expected.draft_2005 = false;
    FUZZ_CHECK(std::holds_alternative<ParsedHeader>(told) && std::get<ParsedHeader>(told).header == expected);
  }
  const PrivateData announced = PrivateData::parse(message);
  FUZZ_CHECK(PrivateData::parse(announced.encode()) == announced);
  return 0;
}
