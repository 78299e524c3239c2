#include "iwarp/gateway/record_writer.h"

#include <algorithm>
#include <cassert>

#include "iwarp/base/wire.h"

namespace iwarp::gateway {
namespace {

constexpr std::uint32_t kLastFragmentBit = 0x80000000;
constexpr std::size_t kMaxFragmentBytes = 0x7FFFFFFF;

}  // namespace

RecordWriter::RecordWriter(const RecordWriterOptions& options)
    : options_(options),
      records_(options.max_records),
      pieces_(options.max_pieces),
      written_(options.max_records),
      gather_() {
  gather_.reserve(options.max_gather);
}

Result<void> RecordWriter::add(std::uint64_t id, std::span<const ConstBytes> pieces) {
  std::size_t bytes = 0;
  std::size_t count = 1;  // the mark
  for (const ConstBytes piece : pieces) {
    if (piece.empty()) continue;
    if (piece.size() > kMaxFragmentBytes - bytes) {
      return make_error(Errc::kInvalidArgument, "RPC record longer than one fragment can be");
    }
    bytes += piece.size();
    ++count;
  }
  if (bytes == 0) return make_error(Errc::kInvalidArgument, "empty RPC record");
  if (count > pieces_.capacity()) return make_error(Errc::kInvalidArgument, "RPC record of too many pieces");
  if (records_.size() + written_.size() >= options_.max_records || count > pieces_.capacity() - pieces_.size()) {
    return make_error(Errc::kQueueFull);
  }
  const bool fits = records_.reserve(1) && pieces_.reserve(count) && written_.reserve(records_.size() + 1);
  if (!fits) return make_error(Errc::kResource, "no memory for the list of records to send");
  Record& record = *records_.add();  // it does not move: the mark may be pointed at
  record = {{}, id, count};
  store_be<std::uint32_t>(record.mark, kLastFragmentBit | static_cast<std::uint32_t>(bytes));
  pieces_.push(ConstBytes(record.mark));
  for (const ConstBytes piece : pieces) {
    if (!piece.empty()) pieces_.push(piece);
  }
  return {};
}

std::span<const ConstBytes> RecordWriter::tx_buffers() {
  gather_.clear();
  const std::size_t n = std::min(pieces_.size(), options_.max_gather);
  for (std::size_t i = 0; i < n; ++i) gather_.push_back(pieces_.at(i));
  return gather_;
}

void RecordWriter::tx_commit(std::size_t n) {
  while (n > 0) {
    assert(!pieces_.empty());
    ConstBytes& piece = pieces_.front();
    if (n < piece.size()) {
      piece = piece.subspan(n);
      return;
    }
    n -= piece.size();
    pieces_.pop();
    if (--records_.front().pieces_left == 0) written_.push(records_.pop().id);
  }
}

std::optional<std::uint64_t> RecordWriter::poll_written() {
  if (written_.empty()) return std::nullopt;
  return written_.pop();
}

}  // namespace iwarp::gateway
