#include "tools/peer_address.h"

#include <gmock/gmock.h>

namespace iwarp::test {
namespace {

using gateway::HostPort;
using tools::peer_address;

TEST(PeerAddress, HasTheUsualPortUnlessItNamesOne) {
  for (const auto& [text, host, port] : {std::tuple{"server", "server", 20049},
                                         {"server:7174", "server", 7174},
                                         {"10.0.0.2", "10.0.0.2", 20049},
                                         {"10.0.0.2:1", "10.0.0.2", 1},
                                         {"::1", "::1", 20049},
                                         {"[::1]", "::1", 20049},
                                         {"[::1]:7174", "::1", 7174},
                                         {"fe80::1%lo", "fe80::1%lo", 20049}}) {
    const auto parsed = peer_address(text, 20049);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error;
    EXPECT_EQ(*parsed.value, (HostPort{host, static_cast<std::uint16_t>(port)})) << text;
  }
}

TEST(PeerAddress, SaysWhatIsWrong) {
  for (const char* text : {"", ":1", "host:", "host:65536", "host:x", "a:b:c", "[::1", "[]", "[::1]x"}) {
    const auto parsed = peer_address(text, 20049);
    EXPECT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error, ::testing::HasSubstr("HOST:PORT")) << text;
  }
}

}  // namespace
}  // namespace iwarp::test
