// Another program's listener as target: MPA responder only.
#pragma once

#include <cstdint>
#include <set>

#include "tests/hostile/target.h"

namespace iwarp::hostile {

class RemoteTarget final : public Target {
 public:
  // `flavours`: what the listener is besides kDefault.
  RemoteTarget(std::string host, std::string port, std::chrono::milliseconds settle, std::set<Flavour> flavours)
      : host_(std::move(host)), port_(std::move(port)), settle_(settle), flavours_(std::move(flavours)) {}

  // Tries for some seconds: a server that serves one client at a time needs a moment. Throws std::runtime_error.
  [[nodiscard]] test::RawTcp dial(Flavour flavour) override;
  [[nodiscard]] test::RawTcp hook(Flavour flavour) override;
  [[nodiscard]] std::chrono::milliseconds settle() const override { return settle_; }
  [[nodiscard]] std::chrono::milliseconds patience() const override { return std::chrono::seconds(20); }

 private:
  std::string host_, port_;
  std::chrono::milliseconds settle_;
  std::set<Flavour> flavours_;
};

}  // namespace iwarp::hostile
