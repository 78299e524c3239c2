#include "iwarp/stream/tx_gather.h"

#include <algorithm>
#include <cstring>

namespace iwarp::stream {
namespace {
constexpr std::size_t kBlockBytes = 8192;
}

MutBytes TxGather::allocate(std::size_t n) {
  if (blocks_.empty() || blocks_.back().size - blocks_.back().used < n) {
    const std::size_t size = std::max(n, kBlockBytes);
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size, 0, end_});
    staged_ += size;
  }
  Block& b = blocks_.back();
  b.used += n;
  return {b.bytes.get() + b.used - n, n};
}

void TxGather::append(ConstBytes owned) {
  if (owned.empty()) return;
  end_ += owned.size();
  blocks_.back().last = end_;
  if (joinable_ && !pieces_.empty() && !pieces_.back().pinned &&
      pieces_.back().bytes.data() + pieces_.back().bytes.size() == owned.data()) {
    Piece& last = pieces_.back();
    last.bytes = {last.bytes.data(), last.bytes.size() + owned.size()};
    return;
  }
  pieces_.push_back({owned, {}, false});
  joinable_ = true;
}

void TxGather::append(ddp::Pin pin) {
  const ConstBytes bytes = pin.bytes();
  if (bytes.empty()) return;
  end_ += bytes.size();
  pieces_.push_back({bytes, std::move(pin), true});
}

void TxGather::end_fpdu(const Done& done, bool read_response) {
  fpdus_.push_back({fpdu_begin_, end_, pieces_popped_ + pieces_.size(), done, read_response});  // req: RFC5044-A.1-1
  fpdu_begin_ = end_;
}

bool TxGather::resume() {
  std::size_t fpdu = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].pin.resume()) continue;
    while (fpdu < fpdus_.size() && fpdus_[fpdu].pieces_end <= pieces_popped_ + i) ++fpdu;
    lost_read_source_ = fpdus_[fpdu].read_response;
    if (fpdus_[fpdu].begin < committed_) {
      broken_ = true;
    } else {
      truncate(fpdu);
    }
    return false;
  }
  return true;
}

void TxGather::truncate(std::size_t fpdus_kept) {
  const std::uint64_t keep_until = fpdus_kept == 0 ? committed_ : fpdus_[fpdus_kept - 1].end;
  fpdus_.resize(fpdus_kept);
  // A joined piece may hold the trailer of a kept FPDU and the header of a dropped one: cut by octets, not by pieces.
  std::uint64_t at = committed_;
  std::size_t i = 0;
  for (; i < pieces_.size() && at < keep_until; ++i) {
    const auto left = static_cast<std::size_t>(keep_until - at);
    if (pieces_[i].bytes.size() > left) pieces_[i].bytes = pieces_[i].bytes.first(left);
    at += pieces_[i].bytes.size();
  }
  pieces_.resize(i);
  if (!fpdus_.empty()) fpdus_.back().pieces_end = pieces_popped_ + pieces_.size();
  end_ = fpdu_begin_ = keep_until;
  joinable_ = false;
  if (pieces_.empty()) clear();  // what is dropped is not staged any more
}

void TxGather::drop_unbegun() {
  const bool begun = !fpdus_.empty() && fpdus_.front().begin < committed_;
  truncate(begun ? 1 : 0);
  if (begun) copy_aside_rest_of_front();
}

std::span<const ConstBytes> TxGather::spans() {
  spans_.clear();
  for (const Piece& p : pieces_) spans_.push_back(p.bytes);
  return spans_;
}

void TxGather::commit(std::size_t n, std::vector<Done>& done) {
  committed_ += n;
  while (n > 0) {
    Piece& p = pieces_.front();
    if (p.bytes.size() > n) {
      p.bytes = p.bytes.subspan(n);
      break;
    }
    n -= p.bytes.size();
    pieces_.pop_front();
    ++pieces_popped_;
  }
  while (!fpdus_.empty() && fpdus_.front().end <= committed_) {
    if (fpdus_.front().done.what != Done::What::kNothing) done.push_back(fpdus_.front().done);
    fpdus_.pop_front();
  }
  if (pieces_.empty()) {
    clear();
    return;
  }
  // While the pins are held: what is revoked between suspend() and this would be missing in the midst of an FPDU.
  if (!fpdus_.empty() && fpdus_.front().read_response && fpdus_.front().begin < committed_) copy_aside_rest_of_front();
  suspend();
  joinable_ = false;
  // A peer that takes data as slowly as we add it must not make the storage grow.
  while (blocks_.size() > 1 && blocks_.front().last <= committed_) {
    staged_ -= blocks_.front().size;
    blocks_.pop_front();
  }
}

void TxGather::copy_aside_rest_of_front() {
  const std::size_t count = fpdus_.front().pieces_end - pieces_popped_;
  for (std::size_t i = 0; i < count && i < pieces_.size(); ++i) {
    Piece& p = pieces_[i];
    if (!p.pinned) continue;
    if (!p.pin.resume()) continue;  // revoked already: resume() will find the stream broken
    const MutBytes copy = allocate(p.bytes.size());
    std::memcpy(copy.data(), p.bytes.data(), copy.size());
    p = {copy, {}, false};
    blocks_.back().last = std::max(blocks_.back().last, fpdus_.front().end);
  }
}

void TxGather::suspend() {
  for (Piece& p : pieces_) p.pin.suspend();
}

void TxGather::clear() {
  pieces_.clear();
  fpdus_.clear();
  blocks_.clear();
  staged_ = 0;
  spans_.clear();
  pieces_popped_ = 0;
  end_ = fpdu_begin_ = committed_;
  joinable_ = false;
}

}  // namespace iwarp::stream
