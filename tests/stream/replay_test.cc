// Replays tests/vectors/mpa/peers.replay: startup, and the RTR, with the peers that are known.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "iwarp/enhanced/private_depths.h"
#include "tests/support/covers.h"
#include "tests/support/endpoint.h"
#include "tests/support/segments.h"
#include "tests/support/vectors.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::hex;
using test::to_hex;

constexpr TimePoint kNow{std::chrono::seconds(1000)};

struct Replay {
  std::string name;
  bool initiator = false, smb = false;
  mpa::Policy policy;
  struct Turn {
    bool from_peer = false;
    Bytes octets;
  };
  std::vector<Turn> turns;
  std::string outcome;
};

// "crc" at the end stands for the CRC of the FPDU.
Bytes octets_of(std::string text) {
  const auto crc = text.find("crc");
  if (crc == std::string::npos) return hex(text);
  const Bytes covered = hex(text.substr(0, crc));
  const Bytes ulpdu(covered.begin() + mpa::kLengthBytes, covered.end());
  return test::fpdu(ulpdu, true);
}

void read_word(const std::string& word, Replay& replay) {
  const auto number = [&] { return static_cast<std::uint16_t>(std::stoi(word.substr(word.find('=') + 1))); };
  mpa::Policy& p = replay.policy;
  if (word == "initiator" || word == "responder") {
    replay.initiator = word == "initiator";
  } else if (word == "smb") {
    replay.smb = true;
  } else if (word == "no-p2p") {
    p.peer_to_peer = false;
  } else if (word == "no-read") {
    p.rtr_read = false;
  } else if (word == "rtr-send") {
    p.rtr_send = true;
  } else if (word == "rev1") {
    p.revision = 1;
  } else if (word == "prefer-off") {
    p.crc = mpa::Policy::Crc::kPreferOff;
  } else if (word.rfind("ird=", 0) == 0) {
    p.ird = number();
  } else if (word.rfind("ord=", 0) == 0) {
    p.ord = number();
  } else if (word.rfind("max_ird=", 0) == 0) {
    p.max_ird = number();
  } else {
    ADD_FAILURE() << "unknown word " << word;
  }
}

std::vector<Replay> load() {
  std::ifstream in(test::vector_path("mpa/peers.replay"));
  std::vector<Replay> out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      out.emplace_back().name = line;
    } else if (line[0] == '<' || line[0] == '>') {
      out.back().turns.push_back({line[0] == '<', octets_of(line.substr(2))});
    } else if (line[0] == '=') {
      out.back().outcome = line.substr(2);
    } else {
      std::istringstream words(line);
      std::string word;
      words >> word;  // "iwarp"
      while (words >> word) read_word(word, out.back());
    }
  }
  return out;
}

enhanced::Depths own(const mpa::Policy& p) {
  return {p.ird, p.ord};
}

// What the application of this end does with the private data of SMB Direct.
void accept(mpa::Responder& responder, const Replay& replay, const Bytes& request) {
  EXPECT_EQ(responder.rx(request, kNow), request.size());
  const auto event = responder.poll_event();
  ASSERT_TRUE(event && std::holds_alternative<mpa::RequestReceived>(*event));
  const mpa::Policy& p = replay.policy;
  if (!replay.smb) {
    EXPECT_TRUE(responder.accept(p.ird, p.ord, {}));
    return;
  }
  const auto told = enhanced::parse_private_depths(std::get<mpa::RequestReceived>(*event).private_data);
  ASSERT_TRUE(told);
  const auto answer = enhanced::write_private_depths(enhanced::answer_private_depths(own(p), *told));
  EXPECT_TRUE(responder.accept(p.ird, p.ord, answer, told));
}

std::string outcome_of(test::Endpoint& end, const Replay& replay) {
  if (const auto* down = end.disconnected()) return name(down->reason.code);
  if (end.conn().phase() != Phase::kFull) return end.conn().phase() == Phase::kEndWait ? "terminated" : "not up";
  const auto* up = end.established();
  if (up == nullptr) return "not up";
  if (replay.smb && replay.initiator) {
    const auto answer = enhanced::parse_private_depths(up->private_data);
    if (!answer) return "no depths";
    const enhanced::Depths peer = enhanced::crossed(*answer);
    EXPECT_TRUE(end.conn().settle_depths(peer.ird, peer.ord, kNow));
  }
  return end.conn().negotiated().to_string();
}

void run(const Replay& replay) {
  SCOPED_TRACE(replay.name);
  test::Endpoint end(1);
  Bytes private_data;
  if (replay.smb) {
    const auto octets = enhanced::write_private_depths(own(replay.policy));
    private_data.assign(octets.begin(), octets.end());
  }
  if (replay.initiator) end.start(mpa::Initiator(replay.policy, private_data, kNow), kNow);
  bool started = replay.initiator;
  for (const auto& turn : replay.turns) {
    if (!turn.from_peer) {
      EXPECT_EQ(to_hex(end.send(~std::size_t{0}, kNow)), to_hex(turn.octets));
    } else if (!started) {
      started = true;
      mpa::Responder responder(replay.policy, kNow);
      accept(responder, replay, turn.octets);
      end.start(std::move(responder), kNow);
    } else {
      EXPECT_EQ(end.receive(turn.octets, kNow), turn.octets.size());
    }
  }
  EXPECT_TRUE(end.send(~std::size_t{0}, kNow).empty()) << "nothing else";
  if (end.conn().phase() == Phase::kEndWait) end.end(TcpEnd::kFin, kNow);
  EXPECT_EQ(outcome_of(end, replay), replay.outcome);
}

TEST(Replay, EveryKnownPeer) {
  COVERS("RFC6581-9.2-6");
  COVERS("RFC6581-9.2-13");
  COVERS("RFC6581-9.1-15");
  COVERS("RFC6581-9.1-24");
  COVERS("RFC6581-9.1-27");
  const auto all = load();
  EXPECT_EQ(all.size(), 19U);
  for (const Replay& replay : all) run(replay);
}

}  // namespace
}  // namespace iwarp::stream
