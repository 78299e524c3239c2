#include "iwarp/gateway/record_reader.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/pages.h"

namespace iwarp::gateway {
namespace {

constexpr std::uint32_t kLastFragmentBit = 0x80000000;

}  // namespace

RecordReader::RecordReader(const RecordOptions& options) : options_(options) {
  const std::size_t bytes = std::max(options.read_ahead_bytes, kHeaderBytes);
  pages_ = rpcrdma::map_pages((bytes + rpcrdma::kPageBytes - 1) / rpcrdma::kPageBytes * rpcrdma::kPageBytes);
  if (pages_.empty()) throw std::bad_alloc();
  ahead_ = pages_.first(bytes);
}

RecordReader::~RecordReader() {
  rpcrdma::unmap_pages(pages_);
}

void RecordReader::rest() {
  if (ahead_begin_ == ahead_end_) rpcrdma::forget_pages(pages_);
}

std::span<const MutBytes> RecordReader::rx_buffers() {
  if (state_ != State::kReceiving) return {};
  if (ahead_begin_ == ahead_end_) {
    ahead_begin_ = ahead_end_ = 0;
  } else if (ahead_begin_ > 0) {  // the front part of a header, at most 3 bytes
    std::memmove(ahead_.data(), ahead_.data() + ahead_begin_, ahead_end_ - ahead_begin_);
    ahead_end_ -= ahead_begin_;
    ahead_begin_ = 0;
  }
  std::size_t n = 0;
  // Inside a fragment the read-ahead is always empty: take_read_ahead() has drained it.
  if (in_fragment_) rx_[n++] = buffer_.subspan(received_bytes_, fragment_left_);
  rx_[n++] = ahead_.subspan(ahead_end_);
  return std::span<const MutBytes>(rx_).first(n);
}

void RecordReader::rx_commit(std::size_t n) {
  if (state_ != State::kReceiving) {
    assert(n == 0);
    return;
  }
  if (in_fragment_) {
    const std::size_t direct = std::min(n, fragment_left_);
    received_bytes_ += direct;
    fragment_left_ -= direct;
    n -= direct;
  }
  assert(n <= ahead_.size() - ahead_end_);
  ahead_end_ += n;
  advance();
}

std::optional<Error> RecordReader::rx_end() const {
  if (state_ == State::kError) return error_;
  const bool between_records = state_ == State::kReceiving && !started_ && ahead_begin_ == ahead_end_;
  if (between_records) return std::nullopt;
  return Error{Errc::kConnectionLost, std::nullopt, "TCP connection ended inside an RPC record"};
}

void RecordReader::give_buffer(MutBytes buffer) {
  assert(state_ == State::kNeedBuffer && buffer.size() >= wanted_bytes_);
  buffer_ = buffer;
  state_ = State::kReceiving;
  advance();
}

void RecordReader::next() {
  assert(state_ == State::kRecord);
  start_record();
  state_ = State::kReceiving;
  advance();
}

void RecordReader::start_record() {
  buffer_ = {};
  received_bytes_ = wanted_bytes_ = fragment_left_ = empty_fragments_ = 0;
  in_fragment_ = last_fragment_ = started_ = false;
}

void RecordReader::advance() {
  while (state_ == State::kReceiving) {
    if (!in_fragment_) {
      if (!take_header()) return;
      continue;  // a header can ask for a buffer, or fail
    }
    take_read_ahead();
    if (fragment_left_ > 0) return;
    in_fragment_ = false;
    if (last_fragment_) state_ = State::kRecord;
  }
}

bool RecordReader::take_header() {
  if (ahead_end_ - ahead_begin_ < kHeaderBytes) return false;
  const auto mark = load_be<std::uint32_t>(ConstBytes(ahead_).subspan(ahead_begin_, kHeaderBytes));
  ahead_begin_ += kHeaderBytes;
  const std::size_t bytes = mark & ~kLastFragmentBit;
  last_fragment_ = (mark & kLastFragmentBit) != 0;
  started_ = true;

  if (bytes > options_.max_record_bytes - received_bytes_) {
    fail(Errc::kRecordTooLong);
    return true;
  }
  if (last_fragment_ && received_bytes_ + bytes < options_.min_record_bytes) {
    fail(Errc::kRecordTooShort);
    return true;
  }
  if (bytes == 0 && ++empty_fragments_ > options_.max_empty_fragments) {
    fail(Errc::kEmptyFragments);
    return true;
  }
  in_fragment_ = true;
  fragment_left_ = bytes;
  if (bytes > 0 && buffer_.empty()) {
    wanted_bytes_ = last_fragment_ ? bytes : options_.max_record_bytes;
    state_ = State::kNeedBuffer;
  }
  return true;
}

void RecordReader::take_read_ahead() {
  const std::size_t n = std::min(fragment_left_, ahead_end_ - ahead_begin_);
  if (n == 0) return;
  std::memcpy(buffer_.data() + received_bytes_, ahead_.data() + ahead_begin_, n);
  ahead_begin_ += n;
  received_bytes_ += n;
  fragment_left_ -= n;
}

void RecordReader::fail(Errc code) {
  error_ = make_error(code);
  state_ = State::kError;
}

}  // namespace iwarp::gateway
