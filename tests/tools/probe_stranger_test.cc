// The protocols that `iwarp probe` knows by what they answer: pure.
#include "tools/probe/stranger.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace iwarp::test {
namespace {

using tools::probe::stranger;
using tools::probe::to_string;

Bytes octets(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string named(const Bytes& octets) {
  const auto who = stranger(octets);
  return who ? to_string(*who) : "";
}

TEST(ProbeStranger, IsKnownByWhatItAnswers) {
  EXPECT_EQ(named(octets("HTTP/1.1 400 Bad Request\r\nServer: x\r\n")), "HTTP: \"HTTP/1.1 400 Bad Request\"");
  EXPECT_EQ(named(octets("<html><head>")), "HTTP: \"<html><head>\"");
  EXPECT_EQ(named(octets("SSH-2.0-OpenSSH_9.2p1 Debian\r\n")), "SSH: \"SSH-2.0-OpenSSH_9.2p1 Debian\"");
  EXPECT_EQ(named(octets("220 mail.example ESMTP\r\n")), "FTP or SMTP: \"220 mail.example ESMTP\"");
  EXPECT_EQ(named(hex("1503010002 0246")), "TLS") << "the alert: protocol version";
  EXPECT_EQ(named(hex("1603030200 01")), "TLS") << "a hello";
  EXPECT_EQ(named(hex("00000054 fe534d42 4000")), "SMB");
  EXPECT_EQ(named(hex("80000018 00000007 00000001 00000000 00000000")), "ONC RPC over TCP, as NFS");
  EXPECT_EQ(named(hex("000012 04 00 00000000 000300000064")), "HTTP/2") << "SETTINGS";
}

TEST(ProbeStranger, IsNotGuessed) {
  for (const Bytes& what : {Bytes{}, hex("15"), hex("1503"), hex("1503010000"), hex("1509010002 0246"), Bytes(64),
                            hex("4d50412049442052657120 4672616d65"), hex("00000054 fe534d"), octets("HELLO\r\n"),
                            hex("80000018 00000007 00000000 00000000 00000000"),
                            hex("00000018 00000007 00000001 00000000 00000000"), hex("000000 04 00 00000000")}) {
    EXPECT_EQ(named(what), "") << to_hex(what);
  }
}

TEST(ProbeStranger, GreetingIsFitForATerminal) {
  EXPECT_EQ(named(octets("SSH-\x1b[2Jx\x07")), "SSH: \"SSH-.[2Jx.\"");
  EXPECT_EQ(named(octets("HTTP/" + std::string(200, 'x'))), "HTTP: \"HTTP/" + std::string(55, 'x') + "...\"");
}

}  // namespace
}  // namespace iwarp::test
