#include "tools/llp_flags.h"

namespace iwarp::tools {

void LlpFlags::add(CLI::App& app, const std::string& group) {
  app.add_option("--llp", llp_,
                 "What carries the connection: MPA over TCP, or SCTP over UDP (RFC 5043, RFC 6951), with the port for "
                 "both UDP and SCTP. The same at both ends; docs/SCTP.md")
      ->check(CLI::IsMember({"tcp", "sctp"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--sctp-packet", packet_,
                 "With --llp sctp: octets of a packet that is sent, at most. The path MTU is not looked for: more than "
                 "it carries is cut by IP. Loopback carries 65507")
      ->check(CLI::Range(576, 65507))
      ->type_name("OCTETS")
      ->default_str(std::to_string(llp::SctpOptions{}.packet_bytes))
      ->group(group);
}

void LlpFlags::check() const {
  if (kind() == llp::Kind::kTcp && packet_.value_or(llp::SctpOptions{}.packet_bytes) != llp::SctpOptions{}.packet_bytes)
    throw CLI::ValidationError("--sctp-packet", "goes with --llp sctp");
  if (kind() == llp::Kind::kSctp && !llp::has(llp::Kind::kSctp))
    throw CLI::ValidationError("--llp",
                               "this iwarp was built without SCTP: build it where libusrsctp is (Debian: "
                               "apt-get install libusrsctp-dev), and not with IWARP_SCTP=OFF");
}

}  // namespace iwarp::tools
