#include "iwarp/gateway/access.h"

#include <gtest/gtest.h>

namespace iwarp::gateway {
namespace {

using boost::asio::ip::make_address;

bool allowed(const char* list, const char* client) {
  const auto parsed = AccessList::parse(list);
  EXPECT_TRUE(parsed) << parsed.error;
  return parsed && parsed.value->allows(make_address(client));
}

TEST(AccessList, DefaultIsLoopbackOnly) {
  const AccessList list;
  EXPECT_EQ(list.to_string(), "127.0.0.0/8,::1/128");
  for (const char* yes : {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(list.allows(make_address(yes))) << yes;
  }
  for (const char* no : {"126.255.255.255", "128.0.0.0", "10.0.0.1", "::", "::2", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(list.allows(make_address(no))) << no;
  }
}

TEST(AccessList, MatchesNetworks) {
  const struct {
    const char* list;
    const char* client;
    bool allowed;
  } cases[] = {
      {"10.0.0.0/8", "10.255.1.2", true},
      {"10.0.0.0/8", "11.0.0.0", false},
      {"10.1.2.128/25", "10.1.2.127", false},
      {"10.1.2.128/25", "10.1.2.128", true},
      {"10.1.2.3", "10.1.2.3", true},
      {"10.1.2.3", "10.1.2.4", false},
      {"0.0.0.0/0", "203.0.113.9", true},
      {"0.0.0.0/0", "2001:db8::1", false},
      {"::/0", "2001:db8::1", true},
      {"::/0", "203.0.113.9", false},
      {"::/0", "::ffff:203.0.113.9", false},
      {"10.0.0.0/8", "::ffff:10.9.8.7", true},
      {"::ffff:10.0.0.0/104", "10.9.8.7", true},
      {"::ffff:10.0.0.0/104", "::ffff:11.0.0.1", false},
      {"2001:db8::/33", "2001:db8:7fff::1", true},
      {"2001:db8::/33", "2001:db8:8000::1", false},
      {"fe80::/10", "fe80::1%1", true},
      {"10.0.0.0/8, 192.168.0.0/16 ,::1/128", "192.168.7.7", true},
      {"10.0.0.0/8,192.168.0.0/16,::1/128", "::1", true},
      {"10.0.0.0/8,192.168.0.0/16,::1/128", "172.16.0.1", false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(allowed(c.list, c.client), c.allowed) << c.list << " " << c.client;
  }
}

TEST(AccessList, RefusesWithTheRightAdvice) {
  const char* missing =
      "a network is missing: give CIDR notation such as 10.0.0.0/8 or fd00::/8, with one comma between two";
  const char* not_an_address =
      " is not an IPv4 or IPv6 address (names are not resolved): give CIDR notation such as 10.0.0.0/8 or fd00::/8";
  const struct {
    const char* text;
    std::string error;
  } cases[] = {
      {"", missing},
      {"10.0.0.0/8,", missing},
      {"10.0.0.0/8,,::1", missing},
      {"client.example/24", std::string("'client.example'") + not_an_address},
      {"10.0.0/8", std::string("'10.0.0'") + not_an_address},
      {"10.0.0.256", std::string("'10.0.0.256'") + not_an_address},
      {"/8", std::string("''") + not_an_address},
      {"10.0.0.0/33",
       "'10.0.0.0/33' has a bad prefix length: behind the slash of an IPv4 network comes a number from 0 to 32"},
      {"10.0.0.0/",
       "'10.0.0.0/' has a bad prefix length: behind the slash of an IPv4 network comes a number from 0 to 32"},
      {"10.0.0.0/255.0.0.0",
       "'10.0.0.0/255.0.0.0' has a bad prefix length: behind the slash of an IPv4 network comes a number from 0 to 32"},
      {"::1/129",
       "'::1/129' has a bad prefix length: behind the slash of an IPv6 network comes a number from 0 to 128"},
      {"::1/-1", "'::1/-1' has a bad prefix length: behind the slash of an IPv6 network comes a number from 0 to 128"},
      {"::/4294967296",
       "'::/4294967296' has a bad prefix length: behind the slash of an IPv6 network comes a number from 0 to 128"},
      {"10.1.2.3/8",
       "'10.1.2.3/8' has bits set behind its prefix: write 10.0.0.0/8 for the network or 10.1.2.3/32 for the one "
       "address"},
      {"10.0.0.0/8,fd00::1/64",
       "'fd00::1/64' has bits set behind its prefix: write fd00::/64 for the network or fd00::1/128 for the one "
       "address"},
  };
  for (const auto& c : cases) {
    const auto parsed = AccessList::parse(c.text);
    EXPECT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error, c.error);
  }
}

TEST(AccessList, PrintsWhatItParses) {
  const char* text = "10.0.0.0/8,192.168.1.1/32,fd00::/8";
  EXPECT_EQ(AccessList::parse(text).value->to_string(), text);
}

TEST(SourceMap, MapsNothingByDefault) {
  EXPECT_TRUE(SourceMap().empty());
  EXPECT_FALSE(SourceMap().source_for(make_address("10.0.0.1")));
}

TEST(SourceMap, PrefersTheMostSpecificNetwork) {
  const auto map =
      SourceMap::parse("10.0.0.0/8=127.0.1.0, 10.1.0.0/16=127.0.1.1,10.1.2.3=127.0.1.2,fd00::/8=127.0.6.1,::/0=::1");
  ASSERT_TRUE(map) << map.error;
  const struct {
    const char* client;
    const char* source;  // empty: none
  } cases[] = {
      {"10.200.0.1", "127.0.1.0"},
      {"10.1.9.9", "127.0.1.1"},
      {"10.1.2.3", "127.0.1.2"},
      {"::ffff:10.1.2.3", "127.0.1.2"},
      {"fd00::5", "127.0.6.1"},
      {"2001:db8::1", "::1"},
      {"11.0.0.1", ""},
  };
  for (const auto& c : cases) {
    const auto source = map.value->source_for(make_address(c.client));
    EXPECT_EQ(source ? source->to_string() : "", c.source) << c.client;
  }
  EXPECT_EQ(map.value->to_string(),
            "10.1.2.3/32=127.0.1.2,10.1.0.0/16=127.0.1.1,10.0.0.0/8=127.0.1.0,fd00::/8=127.0.6.1,::/0=::1");
}

TEST(SourceMap, RefusesWithTheRightAdvice) {
  const std::string not_an_entry =
      " is not CIDR=ADDR: write the clients' network, '=' and the local source address, such as 10.1.0.0/16=127.0.1.1";
  const std::string not_a_source =
      " cannot be a source address: behind '=' comes one address of this machine, such as 127.0.1.1";
  const struct {
    const char* text;
    std::string error;
  } cases[] = {
      {"", "''" + not_an_entry},
      {"10.0.0.0/8", "'10.0.0.0/8'" + not_an_entry},
      {"10.0.0.0/8=127.0.1.1,", "''" + not_an_entry},
      {"10.0.0.0/8=", "'' in '10.0.0.0/8='" + not_a_source},
      {"10.0.0.0/8=localhost", "'localhost' in '10.0.0.0/8=localhost'" + not_a_source},
      {"10.0.0.0/8=127.0.1.0/24", "'127.0.1.0/24' in '10.0.0.0/8=127.0.1.0/24'" + not_a_source},
      {"10.0.0.0/8=0.0.0.0", "'0.0.0.0' in '10.0.0.0/8=0.0.0.0'" + not_a_source},
      {"10.0.0.0/8=224.0.0.1", "'224.0.0.1' in '10.0.0.0/8=224.0.0.1'" + not_a_source},
      {"10.0.0.1/8=127.0.1.1",
       "'10.0.0.1/8' has bits set behind its prefix: write 10.0.0.0/8 for the network or 10.0.0.1/32 for the one "
       "address"},
      {"10.0.0.0/8=127.0.1.1,::ffff:10.0.0.0/104=127.0.1.2",
       "10.0.0.0/8 is mapped twice, to 127.0.1.1 and to 127.0.1.2: keep one of them"},
  };
  for (const auto& c : cases) {
    const auto parsed = SourceMap::parse(c.text);
    EXPECT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error, c.error);
  }
}

}  // namespace
}  // namespace iwarp::gateway
