#include "dropin/verbs/lost_peer.h"

#include <boost/asio/steady_timer.hpp>

#include "dropin/verbs/interface.h"
#include "dropin/verbs/quietly.h"

namespace iwarp::dropin {

void give_up_after_end(const std::shared_ptr<cm::Connection>& connection) {
  connection->async_wait_disconnected([qp = connection->qp()](const stream::Disconnected&) {
    try {
      const auto timer = std::make_shared<boost::asio::steady_timer>(engine().io(), kTries);
      timer->async_wait([timer, qp](boost::system::error_code) { quietly([&] { qp->give_up_peer(); }); });
    } catch (...) {  // no memory to wait for that
      quietly([&] { qp->give_up_peer(); });
    }
  });
}

}  // namespace iwarp::dropin
