// What a failed system call says, as an Error: the system's own text, and what can be done about it.
#pragma once

#include <boost/system/error_code.hpp>

#include "iwarp/base/error.h"

namespace iwarp::cm {

// socket(2), bind(2) or listen(2) of a listener: "Address already in use: choose another port, or ...".
[[nodiscard]] Error listen_error(const boost::system::error_code& failed);
// socket(2), bind(2) or connect(2) of somebody who connects: "Connection refused: nothing listens there".
[[nodiscard]] Error connect_error(const boost::system::error_code& failed);
// "cannot resolve the host name: ..."
[[nodiscard]] Error resolve_error(const boost::system::error_code& failed);

}  // namespace iwarp::cm
