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
    if (form != "write" && form != "read" && form != "send")
      return "unknown RTR form '" + form + "': use write, read or send, or several such as write,read";
  }
  return list.empty() ? "at least one RTR form is needed: write, read or send" : "";
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
  usual_ird_ord_ = ird_ord;
  const std::string group = "Connection set-up";
  profile_.add(app, group);
  app.add_option("--mpa-rev", revision_,
                 "Revision of the connection set-up: 2 agrees on --ird, --ord and --rtr (RFC 6581), 1 does not")
      ->check(CLI::IsMember({1U, 2U}))
      ->default_str("2")
      ->group(group);
  app.add_option("--crc", crc_,
                 "Checksum of every frame. prefer-off: none, unless the peer wants it; off: refuse such a peer")
      ->check(one_of(kCrc))
      ->type_name("on|prefer-off|off")
      ->default_str("on")
      ->group(group);
  app.add_option("--markers", markers_,
                 "Markers in the stream, by which a receiver finds frames. serve: send them to a peer that asks; ask: "
                 "want them from the peer, too; refuse: refuse a peer that asks")
      ->check(one_of(kMarkers))
      ->type_name("serve|ask|refuse")
      ->default_str("serve")
      ->group(group);
  auto* p2p = app.add_flag_callback(
      "--p2p", [this] { peer_to_peer_ = true; },
      first == First::kPeerToPeer
          ? "When connecting: ask for set-up in which the client begins with a message that tells it is ready (RTR); "
            "the default with revision 2"
          : "When connecting: ask at once for set-up in which the client begins with a message that tells it is ready "
            "(RTR); by default only a peer that hangs up without is asked");
  p2p->group(group);
  app.add_flag_callback(
         "--no-p2p", [this] { peer_to_peer_ = false; }, "Never ask for that")
      ->excludes(p2p)
      ->group(group);
  app.add_option("--rtr", rtr_,
                 "Forms of that message to offer and take: write, read, send. An RDMA Write or Read is what hardware "
                 "knows; no known peer takes a Send")
      ->type_name("FORM[,FORM...]")
      ->check(check_rtr)
      ->default_str("write,read")
      ->group(group);
  app.add_option("--ird", ird_, "RDMA Reads that the peer may have under way here; up to 128 if the peer asks for more")
      ->check(CLI::Range(0, 16382))
      ->default_str(std::to_string(ird_ord))
      ->group(group);
  app.add_option("--ord", ord_, "RDMA Reads to have under way at the peer")
      ->check(CLI::Range(0, 16382))
      ->default_str(std::to_string(ird_ord))
      ->group(group);
  app.add_option("--fpdu", fpdu_,
                 "Length of frames. emss: what fits a TCP segment, as hardware wants it; 16k: 16 KiB; max: 64 KiB, "
                 "best between programs on loopback")
      ->check(one_of(kFpdu))
      ->type_name("emss|16k|max")
      ->default_str("emss")
      ->group(group);
  auto* wake = app.add_flag_callback(
      "--wake", [this] { early_wake_ = true; },
      "When connecting: send empty RDMA Writes to a peer that has not answered yet; the default, but with profiles of "
      "RNICs. They wake Linux siw, which overlooks what comes early");
  wake->group(group);
  app.add_flag_callback(
         "--no-wake", [this] { early_wake_ = false; }, "Never send those")
      ->excludes(wake)
      ->group(group);
}

void PolicyFlags::apply(stream::Options& options) const {
  profile_.profile().apply(options);
  if (fpdu_) options.fpdu = kFpdu.at(*fpdu_);
  if (early_wake_) options.early_wake = *early_wake_;
}

stream::MpaOptions PolicyFlags::mpa() const {
  stream::Options options;
  apply(options);
  return options;
}

mpa::Policy PolicyFlags::policy() const {
  mpa::Policy p;
  p.peer_to_peer = first_ == First::kPeerToPeer;
  p.ird = p.ord = usual_ird_ord_;
  profile_.profile().apply(p);
  if (revision_) p.revision = static_cast<std::uint8_t>(*revision_);
  if (crc_) p.crc = kCrc.at(*crc_);
  if (markers_) p.markers = kMarkers.at(*markers_);
  if (peer_to_peer_) p.peer_to_peer = p.allow_peer_to_peer_fallback = *peer_to_peer_;
  p.peer_to_peer = p.peer_to_peer && p.revision == 2;
  if (rtr_) {
    p.rtr_write = rtr_->find("write") != std::string::npos;
    p.rtr_read = rtr_->find("read") != std::string::npos;
    p.rtr_send = rtr_->find("send") != std::string::npos;
  }
  p.ird = ird_.value_or(p.ird);
  p.ord = ord_.value_or(p.ord);
  if (auto ok = mpa::validate(p); !ok) throw CLI::ValidationError("connection policy", ok.error().why);
  return p;
}

mpa::Policy PolicyFlags::policy_for_sctp() const {
  const auto refuse = [](const char* flag) {
    throw CLI::ValidationError(flag, "is about MPA over TCP: leave it out with --llp sctp");
  };
  if (profile_.name() != ProfileFlag{}.name()) refuse("--profile");
  if (revision_) refuse("--mpa-rev");
  if (crc_) refuse("--crc");
  if (markers_) refuse("--markers");
  if (fpdu_) refuse("--fpdu");
  if (early_wake_) refuse("--wake");
  mpa::Policy p = policy();
  p.peer_to_peer = peer_to_peer_.value_or(false);
  return p;
}

}  // namespace iwarp::tools
