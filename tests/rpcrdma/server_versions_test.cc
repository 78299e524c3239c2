#include "iwarp/rpcrdma/server_versions.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using namespace std::chrono_literals;
using End = ServerVersions::End;

constexpr TimePoint kBegin{std::chrono::hours(1)};

VersionNegotiation asking() {
  VersionNegotiation out(kVersion2);
  out.on_call_sent();
  return out;
}

VersionNegotiation answered(std::uint32_t version) {
  VersionNegotiation out = asking();
  if (version == kVersion1) {
    EXPECT_TRUE(out.on_err_vers(1, 1));
  }
  EXPECT_TRUE(out.on_reply(version));
  return out;
}

TEST(ServerVersions, RefusalsLowerWhatIsAskedForAWhile) {
  COVERS("V2-5.2-3");
  ServerVersions server;
  EXPECT_EQ(server.highest(kVersion2, kBegin), kVersion2);
  EXPECT_EQ(server.since(), std::nullopt);
  for (const End how : {End::kLost, End::kUnanswered, End::kOurs}) {
    ServerVersions other;
    EXPECT_TRUE(other.learn(answered(kVersion1), how, kBegin, kBegin + 1s));
    EXPECT_EQ(other.highest(kVersion2, kBegin + 1s), kVersion1);
    EXPECT_EQ(other.highest(kVersion1, kBegin + 1s), kVersion1);
    EXPECT_EQ(other.since(), kBegin + 1s);
    EXPECT_EQ(other.highest(kVersion2, kBegin + 1s + kVersionMemoryTime - 1ns), kVersion1);
    EXPECT_EQ(other.highest(kVersion2, kBegin + 1s + kVersionMemoryTime), kVersion2);
  }
}

TEST(ServerVersions, OneThatSaysNothingInItsTimeIsNotAskedAgain) {
  COVERS("V2-5.2-4");
  ServerVersions server;
  EXPECT_TRUE(server.learn(asking(), End::kUnanswered, kBegin, kBegin + 10s));
  EXPECT_EQ(server.highest(kVersion2, kBegin + 10s), kVersion1);
}

TEST(ServerVersions, WhatThisEndCutsShortSaysNothing) {
  ServerVersions server;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(server.learn(asking(), End::kOurs, kBegin + i * 1s, kBegin + i * 1s));
    EXPECT_FALSE(server.learn(VersionNegotiation(kVersion2), End::kLost, kBegin + i * 1s, kBegin + i * 1s));
  }
  EXPECT_EQ(server.highest(kVersion2, kBegin + 5s), kVersion2);
  EXPECT_EQ(server.since(), std::nullopt);
}

TEST(ServerVersions, TwoLostQuestionsOnEndAreARefusal) {
  COVERS("V2-5.2-4");
  ServerVersions server;
  EXPECT_FALSE(server.learn(asking(), End::kLost, kBegin, kBegin + 1s));
  // By the same event: they were begun before the first was lost.
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(server.learn(asking(), End::kLost, kBegin, kBegin + 2s));
  EXPECT_EQ(server.highest(kVersion2, kBegin + 2s), kVersion2);
  EXPECT_TRUE(server.learn(asking(), End::kLost, kBegin + 3s, kBegin + 4s));
  EXPECT_EQ(server.highest(kVersion2, kBegin + 4s), kVersion1);
  // When it is asked again two are needed again.
  const TimePoint later = kBegin + 4s + kVersionMemoryTime;
  EXPECT_FALSE(server.learn(asking(), End::kLost, later, later + 1s));
  EXPECT_EQ(server.highest(kVersion2, later + 1s), kVersion2);
}

TEST(ServerVersions, AnAnswerInBetweenMakesTheLostOneForgotten) {
  ServerVersions server;
  for (int i = 0; i < 5; ++i) {
    const TimePoint now = kBegin + i * 10s;
    EXPECT_FALSE(server.learn(asking(), End::kLost, now, now + 1s));
    EXPECT_FALSE(server.learn(answered(kVersion2), End::kLost, now + 2s, now + 3s));
  }
  EXPECT_EQ(server.highest(kVersion2, kBegin + 50s), kVersion2);
}

}  // namespace
}  // namespace iwarp::rpcrdma
