// Our own application over SCTP as a victim: a listener for each flavour, and connections made on demand. Each
// connection has a thread that answers Sends with Sends until it ends.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "iwarp/cm/engine.h"
#include "iwarp/sctp_cm/service.h"
#include "tests/hostile/sctp_talk.h"

namespace iwarp::hostile::sctp {

class Victim final : public Target {
 public:
  Victim();
  ~Victim() override;
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  [[nodiscard]] std::uint16_t port(Flavour flavour) override;
  void connect_to(std::uint16_t port, Flavour flavour) override;

  // Connections and associations that are not over yet.
  [[nodiscard]] std::size_t living() const { return living_ + service_->associations(); }

 private:
  class Served;

  void accept_next(sctp_cm::Listener& listener, Flavour flavour);
  void run(std::shared_ptr<Served> connection);

  cm::Engine engine_;
  std::unique_ptr<sctp_cm::Service> service_;
  std::map<Flavour, std::unique_ptr<sctp_cm::Listener>> listeners_;
  std::vector<std::unique_ptr<sctp_cm::ConnectRequest>> left_;  // undecided; in the thread of the engine
  std::mutex mu_;
  std::list<std::jthread> threads_;
  std::atomic<std::size_t> living_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace iwarp::hostile::sctp
