#include "iwarp/cm/after_drive.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace iwarp::cm {
namespace {

thread_local AfterDrive* innermost = nullptr;

}  // namespace

AfterDrive::AfterDrive(boost::asio::io_context& io) : io_(io), outer_(std::exchange(innermost, this)) {}

AfterDrive::~AfterDrive() {
  if (innermost == this) innermost = outer_;
  while (done_ < acts_.size()) boost::asio::post(io_, std::move(acts_[done_++]));
}

bool AfterDrive::run() {
  innermost = outer_;  // what an act does belongs to the drive around this one, or to none
  while (done_ < acts_.size()) std::exchange(acts_[done_++], {})();
  return done_ > 0;
}

void AfterDrive::add(boost::asio::io_context& io, Act act) {
  if (innermost == nullptr || &innermost->io_ != &io) return boost::asio::post(io, std::move(act));
  innermost->acts_.push_back(std::move(act));
}

}  // namespace iwarp::cm
