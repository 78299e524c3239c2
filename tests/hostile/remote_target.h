// Another program's listener as target: MPA responder only, configured as it is.
#pragma once

#include <cstdint>

#include "tests/hostile/target.h"

namespace iwarp::hostile {

class RemoteTarget final : public Target {
 public:
  RemoteTarget(std::string host, std::string port, std::chrono::milliseconds settle)
      : host_(std::move(host)), port_(std::move(port)), settle_(settle) {}

  // Tries for some seconds: a server that serves one client at a time needs a moment. Throws std::runtime_error.
  [[nodiscard]] test::RawTcp dial(Flavour flavour) override;
  [[nodiscard]] test::RawTcp hook(Flavour flavour) override;
  [[nodiscard]] std::chrono::milliseconds settle() const override { return settle_; }

 private:
  std::string host_, port_;
  std::chrono::milliseconds settle_;
};

}  // namespace iwarp::hostile
