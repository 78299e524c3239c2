#include "iwarp/rpcrdma/version_negotiation.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using State = VersionNegotiation::State;

TEST(VersionNegotiation, AsksWithOneSmallCall) {
  COVERS("V2-5-1");
  COVERS("V2-5-2");
  COVERS("V2-5-3");
  COVERS("V2-5-4");
  COVERS("V2-5.1-1");
  COVERS("V2-5.1-2");
  VersionNegotiation n(kVersion2);
  EXPECT_EQ(n.state(), State::kUnasked);
  EXPECT_EQ(n.version(), kVersion2);
  EXPECT_TRUE(n.alone());
  EXPECT_EQ(n.inline_bytes(8192), kDefaultInlineBytes);
  n.on_call_sent();
  EXPECT_EQ(n.state(), State::kAsking);
  EXPECT_TRUE(n.alone());
  EXPECT_TRUE(n.on_reply(kVersion2));
  EXPECT_EQ(n.state(), State::kSettled);
  EXPECT_FALSE(n.alone());
  EXPECT_EQ(n.inline_bytes(kDefaultInlineBytes), kDefaultInlineBytes2);
  EXPECT_EQ(n.inline_bytes(8192), 8192u);
  EXPECT_EQ(n.for_next_connection(), std::nullopt);
}

TEST(VersionNegotiation, GoesOnInALowerVersionOnTheSameConnection) {
  COVERS("V2-5.2-2");
  COVERS("V2-5.2-3");
  COVERS("V2-5.2-5");
  COVERS("V2-5.2-6");
  VersionNegotiation n(kVersion2);
  n.on_call_sent();
  EXPECT_TRUE(n.on_err_vers(1, 1));
  EXPECT_EQ(n.version(), kVersion1);
  EXPECT_TRUE(n.alone());  // an error lifts no limit
  EXPECT_EQ(n.inline_bytes(4096), kDefaultInlineBytes);
  EXPECT_EQ(n.for_next_connection(), kVersion1);
  n.on_call_sent();
  EXPECT_TRUE(n.on_reply(kVersion1));
  EXPECT_EQ(n.inline_bytes(4096), 4096u);
  EXPECT_EQ(n.inline_bytes(1024), 1024u);
  EXPECT_EQ(n.for_next_connection(), kVersion1);
}

TEST(VersionNegotiation, FailsWithoutACommonVersion) {
  struct Row {
    std::uint32_t lowest, low, high;
  };
  for (const Row& r :
       {Row{1, 3, 5}, Row{2, 1, 1}, Row{2, 2, 1}, Row{2, 0, 0}, Row{2, 1, 2}, Row{2, 2, 2}, Row{2, 1, 0xFFFFFFFF}}) {
    VersionNegotiation n(kVersion2, r.lowest);
    n.on_call_sent();
    EXPECT_FALSE(n.on_err_vers(r.low, r.high)) << r.low << ' ' << r.high;
    EXPECT_EQ(n.state(), State::kFailed);
    EXPECT_FALSE(n.on_reply(kVersion2));
  }
}

// From such peers version 1 is all there is to be had, and they may well have that.
TEST(VersionNegotiation, AnswersThatMakeNoSenseAreRefusals) {
  struct Row {
    std::uint32_t low, high;
  };
  for (const Row& r : {Row{2, 1}, Row{0, 0}, Row{1, 2}, Row{2, 2}, Row{5, 3}, Row{1, 0xFFFFFFFF}}) {
    VersionNegotiation n(kVersion2);
    n.on_call_sent();
    EXPECT_TRUE(n.on_err_vers(r.low, r.high)) << r.low << ' ' << r.high;
    EXPECT_EQ(n.version(), kVersion1);
    EXPECT_FALSE(n.on_err_vers(r.low, r.high)) << "no loop";
    EXPECT_EQ(n.for_next_connection(), kVersion1);
  }
}

TEST(VersionNegotiation, AnotherErrorOfALowerVersionIsARefusal) {
  VersionNegotiation n(kVersion2);
  n.on_call_sent();
  EXPECT_TRUE(n.on_other_error(kVersion1));
  EXPECT_EQ(n.version(), kVersion1);
  EXPECT_FALSE(n.on_other_error(kVersion1)) << "no loop";
  EXPECT_TRUE(n.on_reply(kVersion1));

  VersionNegotiation of_version_2(kVersion2);
  of_version_2.on_call_sent();
  EXPECT_FALSE(of_version_2.on_other_error(kVersion2)) << "it knows the version, and not the Call";
  EXPECT_TRUE(of_version_2.alone()) << "an error lifts no limit";
  EXPECT_FALSE(of_version_2.on_err_vers(1, 1));
  EXPECT_EQ(of_version_2.for_next_connection(), std::nullopt);

  VersionNegotiation only_2(kVersion2, kVersion2);
  only_2.on_call_sent();
  EXPECT_FALSE(only_2.on_other_error(kVersion1));
  EXPECT_EQ(only_2.state(), State::kFailed);
}

TEST(VersionNegotiation, RefusalsOutOfPlaceChangeNothing) {
  VersionNegotiation unasked(kVersion2);
  EXPECT_FALSE(unasked.on_err_vers(1, 1));
  EXPECT_EQ(unasked.state(), State::kUnasked);

  VersionNegotiation settled(kVersion2);
  settled.on_call_sent();
  EXPECT_TRUE(settled.on_reply(kVersion2));
  EXPECT_FALSE(settled.on_err_vers(1, 1));
  EXPECT_EQ(settled.version(), kVersion2);

  VersionNegotiation lowered(kVersion2);
  lowered.on_call_sent();
  EXPECT_TRUE(lowered.on_err_vers(1, 1));
  EXPECT_FALSE(lowered.on_err_vers(1, 1));  // no loop
}

TEST(VersionNegotiation, AReplyHasTheVersionOfItsCall) {
  COVERS("V2-5.3-1");
  VersionNegotiation n(kVersion2);
  n.on_call_sent();
  EXPECT_FALSE(n.on_reply(kVersion1));
  EXPECT_EQ(n.version(), kVersion1) << "for the Calls that follow";
  EXPECT_FALSE(n.alone());
  EXPECT_EQ(n.for_next_connection(), kVersion1);
  VersionNegotiation only_2(kVersion2, kVersion2);
  only_2.on_call_sent();
  EXPECT_FALSE(only_2.on_reply(kVersion1));
  EXPECT_TRUE(only_2.alone());
}

TEST(VersionNegotiation, APeerThatDoesNotSurviveTheQuestionIsNotAskedAgain) {
  COVERS("V2-5.2-4");
  VersionNegotiation n(kVersion2);
  EXPECT_EQ(n.for_next_connection(), std::nullopt);
  n.on_call_sent();
  EXPECT_EQ(n.for_next_connection(), kVersion1);
  VersionNegotiation only_2(kVersion2, kVersion2);
  only_2.on_call_sent();
  EXPECT_EQ(only_2.for_next_connection(), std::nullopt);
}

TEST(VersionNegotiation, VersionsThatThereAreNotAreThoseThatThereAre) {
  EXPECT_FALSE(VersionNegotiation(0).alone());
  EXPECT_EQ(VersionNegotiation(0).version(), kVersion1);
  EXPECT_EQ(VersionNegotiation(9).version(), kVersion2);
  VersionNegotiation lowest(kVersion1, kVersion2);
  EXPECT_TRUE(lowest.on_reply(kVersion1));
}

TEST(VersionNegotiation, Version1AsksNothing) {
  VersionNegotiation n(kVersion1);
  EXPECT_FALSE(n.alone());
  EXPECT_EQ(n.inline_bytes(4096), 4096u);
  n.on_call_sent();
  EXPECT_FALSE(n.on_err_vers(2, 2));
  EXPECT_EQ(n.for_next_connection(), std::nullopt);
}

}  // namespace
}  // namespace iwarp::rpcrdma
