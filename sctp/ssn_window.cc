#include "iwarp/sctp/ssn_window.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace iwarp::sctp {
namespace {

constexpr std::uint16_t kHalf = 0x8000;  // half of all DDP-SSNs: so far or farther ahead is behind

}  // namespace

bool HoldBudget::take(std::size_t bytes) {
  if (bytes > limit_ - held_) return false;
  held_ += bytes;
  return true;
}

void HoldBudget::give_back(std::size_t bytes) {
  assert(bytes <= held_);
  held_ -= bytes;
}

std::optional<std::uint64_t> SsnWindow::early(const Message& message) const {
  const auto ssn = parse_ssn(message.bytes);
  if (!ssn) return std::nullopt;
  const std::uint16_t ahead = ssn->distance_from(due());
  if (ahead == 0 || ahead >= ahead_ || kept_.contains(ssn->value)) return std::nullopt;
  return taken_ + ahead;
}

Result<bool> SsnWindow::take(const Message& message) {
  const auto ssn = parse_ssn(message.bytes);
  if (!ssn) return ssn.error();
  // The DDP-SSN alone tells the order. req: RFC5043-10-5, RFC5043-5.2.1-4, RFC5043-10-3, RFC5043-10-2, RFC5043-10-4
  const std::uint16_t ahead = ssn->distance_from(due());
  if (ahead == 0) {
    ++taken_;
    return true;
  }
  // Before anything is allocated. req: RFC5043-10-8, RFC5043-10-9, RFC5043-10-10
  if (ahead >= kHalf) return make_error(Errc::kDdpSsn, "message with a DDP-SSN that was there already");
  if (ahead >= ahead_) return make_error(Errc::kDdpSsn, "message with a DDP-SSN too far ahead of the one that is due");
  if (kept_.contains(ssn->value)) return make_error(Errc::kDdpSsn, "message with a DDP-SSN that was there already");
  if (!budget_->take(cost(message.bytes.size())))
    return make_error(Errc::kResource, "no room for messages that came early on this SCTP association");
  kept_.emplace(ssn->value,
                Kept{message.ppid, message.ordered, {message.bytes.begin(), message.bytes.end()}, message.placed});
  return false;
}

std::optional<Message> SsnWindow::next() {
  const auto it = kept_.find(due().value);
  if (it == kept_.end()) return std::nullopt;
  given_ = std::move(it->second.bytes);
  const Message message{it->second.ppid, it->second.ordered, given_, it->second.placed};
  kept_.erase(it);
  budget_->give_back(cost(given_.size()));
  ++taken_;
  return message;
}

void SsnWindow::clear() {
  for (const auto& [ssn, kept] : kept_) budget_->give_back(cost(kept.bytes.size()));
  kept_.clear();
  given_.clear();
}

void SsnSource::taken() {
  assert(may_send());  // req: RFC5043-10-6, RFC5043-10-7
  next_.advance();     // req: RFC5043-5.2.1-2, RFC5043-5.2.1-3, RFC5043-6-2
  ++under_way_;
}

void SsnSource::arrived(std::size_t messages) {
  under_way_ = static_cast<std::uint16_t>(under_way_ - std::min<std::size_t>(messages, under_way_));
}

}  // namespace iwarp::sctp
