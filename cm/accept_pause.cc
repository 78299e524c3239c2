#include "iwarp/cm/accept_pause.h"

namespace iwarp::cm {
namespace {

namespace errc = boost::system::errc;

// A connection that its peer has given up before we took it is no shortage.
bool is_shortage(const boost::system::error_code& ec) {
  return ec == errc::too_many_files_open || ec == errc::too_many_files_open_in_system || ec == errc::no_buffer_space ||
         ec == errc::not_enough_memory;
}

Error describe(const boost::system::error_code& ec) {
  if (ec == errc::too_many_files_open)
    return make_error(Errc::kResource, "no file descriptor left for another connection: raise the limit (ulimit -n)");
  if (ec == errc::too_many_files_open_in_system)
    return make_error(Errc::kResource, "the system has no file descriptor left for another connection");
  return make_error(Errc::kResource, "the system has no memory left for another connection");
}

}  // namespace

void AcceptPause::report(const boost::system::error_code& failed) {
  if (is_shortage(failed)) tell(describe(failed));
}

void AcceptPause::tell(const Error& shortage) {
  if (!tell_) return;
  const auto now = std::chrono::steady_clock::now();
  if (told_ && now - *told_ < kSilence) return;
  told_ = now;
  tell_(shortage);
}

}  // namespace iwarp::cm
