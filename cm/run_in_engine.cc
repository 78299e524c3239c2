#include "iwarp/cm/run_in_engine.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <exception>

namespace iwarp::cm {

void run_in(Engine& engine, const std::function<void()>& what) {
  if (engine.borrows() || engine.leads_here()) return what();
  std::atomic<bool> done{false};
  boost::asio::post(engine.io(), [&what, &done, &engine] {
    struct Told {  // also when it throws
      std::atomic<bool>& done;
      Engine& engine;
      ~Told() {
        Engine& lasting = engine;
        done = true;  // the caller may go from here on
        lasting.look_again();
      }
    } const told{done, engine};
    what();
  });
  std::exception_ptr thrown;  // by a handler of others that ran here meanwhile
  while (!done) {
    try {
      (void)engine.wait_until([&done] { return done.load(); }, TimePoint::max());
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace iwarp::cm
