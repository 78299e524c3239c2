#include "tools/policy_flags.h"

#include <map>
#include <sstream>

namespace iwarp::tools {
namespace {

const std::map<std::string, mpa::Policy::Crc> kCrc = {
    {"on", mpa::Policy::Crc::kOn}, {"prefer-off", mpa::Policy::Crc::kPreferOff}, {"off", mpa::Policy::Crc::kOff}};
const std::map<std::string, mpa::Policy::Markers> kMarkers = {{"serve", mpa::Policy::Markers::kServe},
                                                              {"ask", mpa::Policy::Markers::kAsk},
                                                              {"refuse", mpa::Policy::Markers::kRefuse}};
const std::map<std::string, mpa::FpduPolicy> kFpdu = {
    {"emss", mpa::FpduPolicy::kEmss}, {"16k", mpa::FpduPolicy::k16k}, {"max", mpa::FpduPolicy::kMax}};

std::string check_rtr(const std::string& list) {
  std::istringstream in(list);
  for (std::string form; std::getline(in, form, ',');) {
    if (form != "write" && form != "read") return "unknown RTR form '" + form + "': use write, read or write,read";
  }
  return list.empty() ? "at least one RTR form is needed: write, read or write,read" : "";
}

template <class T>
CLI::Validator one_of(const std::map<std::string, T>& values) {
  return CLI::Validator(
      [&values](const std::string& given) {
        if (values.count(given) != 0) return std::string{};
        std::string text = "unknown value '" + given + "': use";
        const char* separator = " ";
        for (const auto& [name, value] : values) {
          text += separator + name;
          separator = " or ";
        }
        return text;
      },
      "");
}

}  // namespace

void PolicyFlags::add(CLI::App& app, std::uint16_t ird_ord, First first) {
  first_ = first;
  ird_ = ord_ = ird_ord;
  const std::string group = "Connection policy";
  app.add_option("--mpa-rev", revision_, "MPA revision: 2 negotiates IRD, ORD and RTR (RFC 6581), 1 does not")
      ->check(CLI::IsMember({1U, 2U}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--crc", crc_,
                 "CRC32c of FPDUs: on; prefer-off (only if the peer wants it); off (refuse a peer that wants it)")
      ->check(one_of(kCrc))
      ->type_name("on|prefer-off|off")
      ->capture_default_str()
      ->group(group);
  app.add_option("--markers", markers_,
                 "MPA Markers: serve (send them to a peer that asks); ask (the peer is to send them, too); refuse (a "
                 "peer that asks)")
      ->check(one_of(kMarkers))
      ->type_name("serve|ask|refuse")
      ->capture_default_str()
      ->group(group);
  auto* p2p = app.add_flag_callback(
      "--p2p", [this] { peer_to_peer_ = true; },
      first == First::kPeerToPeer
          ? "Ask for peer-to-peer set-up with an RTR message (initiator; the default with revision 2)"
          : "Ask for peer-to-peer set-up with an RTR message at once (initiator; the default asks only a peer that "
            "hangs "
            "up without it)");
  p2p->group(group);
  app.add_flag_callback(
         "--no-p2p", [this] { peer_to_peer_ = false; }, "Never ask for it")
      ->excludes(p2p)
      ->group(group);
  app.add_option("--rtr", rtr_, "RTR forms to offer and take: write, read or both")
      ->check(check_rtr)
      ->capture_default_str()
      ->group(group);
  app.add_option("--ird", ird_, "Inbound RDMA Reads to admit; raised up to 128 if the peer asks for more")
      ->check(CLI::Range(0, 16382))
      ->capture_default_str()
      ->group(group);
  app.add_option("--ord", ord_, "Outbound RDMA Reads to have outstanding")
      ->check(CLI::Range(0, 16382))
      ->capture_default_str()
      ->group(group);
  app.add_option("--fpdu", fpdu_,
                 "FPDU size: emss (fits a TCP segment, for RNICs); 16k; max (software peers, loopback)")
      ->check(one_of(kFpdu))
      ->type_name("emss|16k|max")
      ->capture_default_str()
      ->group(group);
  app.add_flag_callback(
         "--no-wake", [this] { early_wake_ = false; },
         "Send no empty RDMA Writes to a peer that has not answered yet: they wake Linux siw, which overlooks what "
         "comes early (initiator)")
      ->group(group);
}

void PolicyFlags::apply(stream::Options& options) const {
  options.fpdu = kFpdu.at(fpdu_);
  options.early_wake = early_wake_;
}

mpa::Policy PolicyFlags::policy() const {
  mpa::Policy p;
  p.revision = static_cast<std::uint8_t>(revision_);
  p.crc = kCrc.at(crc_);
  p.markers = kMarkers.at(markers_);
  p.peer_to_peer = peer_to_peer_.value_or(first_ == First::kPeerToPeer) && revision_ == 2;
  p.allow_peer_to_peer_fallback = peer_to_peer_.value_or(true);
  p.rtr_write = rtr_.find("write") != std::string::npos;
  p.rtr_read = rtr_.find("read") != std::string::npos;
  p.ird = ird_;
  p.ord = ord_;
  if (auto ok = mpa::validate(p); !ok) throw CLI::ValidationError("connection policy", ok.error().why);
  return p;
}

}  // namespace iwarp::tools
