// Record marking of the gateway (RFC 5531 s11): any octets, with any limits; two chunkings give the same records, and
// nothing is written outside the buffers lent.
//
// Input: largest record (2 octets, at least 8) | read-ahead | empty fragments allowed | the stream.
#include "iwarp/gateway/record_reader.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/fuzz/check.h"
#include "tests/support/hex.h"

namespace iwarp::fuzz {
namespace {

using gateway::RecordReader;
using test::Bytes;

struct Outcome {
  std::vector<Bytes> records;
  Errc error = Errc::kOk;
  bool ended_inside = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class Owner {
 public:
  explicit Owner(const gateway::RecordOptions& options) : options_(options), reader_(options) {}

  Outcome run(ConstBytes stream, Chunking chunking) {
    while (!stream.empty() && reader_.state() != RecordReader::State::kError) {
      const std::size_t n = read(stream.first(chunking.next(stream.size())));
      FUZZ_CHECK(n > 0);
      stream = stream.subspan(n);
      serve();
    }
    if (reader_.state() == RecordReader::State::kError) {
      FUZZ_CHECK(reader_.rx_buffers().empty());
      outcome_.error = reader_.error().code;
    }
    outcome_.ended_inside = reader_.rx_end().has_value();
    return std::move(outcome_);
  }

 private:
  std::size_t read(ConstBytes bytes) {
    std::size_t n = 0;
    for (const MutBytes room : reader_.rx_buffers()) {
      const std::size_t part = std::min(room.size(), bytes.size() - n);
      if (part > 0) std::memcpy(room.data(), bytes.data() + n, part);
      n += part;
    }
    reader_.rx_commit(n);
    return n;
  }

  void serve() {
    for (;;) {
      switch (reader_.state()) {
        case RecordReader::State::kNeedBuffer:
          give_buffer();
          break;
        case RecordReader::State::kRecord:
          FUZZ_CHECK(reader_.record().size() <= options_.max_record_bytes);
          FUZZ_CHECK(reader_.record().size() >= options_.min_record_bytes);
          outcome_.records.emplace_back(reader_.record().begin(), reader_.record().end());
          reader_.next();
          break;
        case RecordReader::State::kReceiving:
        case RecordReader::State::kError:
          return;
      }
    }
  }

  // Exactly as large as asked for, so that the address sanitizer sees every octet too many.
  void give_buffer() {
    const std::size_t wanted = reader_.wanted_bytes();
    FUZZ_CHECK(wanted > 0 && wanted <= options_.max_record_bytes);
    buffer_ = std::make_unique<Bytes>(wanted);
    reader_.give_buffer(*buffer_);
  }

  gateway::RecordOptions options_;
  RecordReader reader_;
  std::unique_ptr<Bytes> buffer_;
  Outcome outcome_;
};

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  iwarp::gateway::RecordOptions options;
  options.max_record_bytes = 8 + script.u16();
  options.read_ahead_bytes = script.u8();
  options.max_empty_fragments = script.u8();
  const auto whole = Owner(options).run(script.rest(), Chunking::whole());
  FUZZ_CHECK(Owner(options).run(script.rest(), Chunking::pieces()) == whole);
  return 0;
}
