#include "tools/perf/spec.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/stream/profile.h"

namespace iwarp::tools::perf {
namespace {

struct Row {
  Test test;
  std::string_view name;
  Test baseline;
  Unit unit;
  std::string_view text;
};

constexpr std::array kRows = {
    Row{Test::kTcpBw, "tcp_bw", Test::kTcpBw, Unit::kOctetsPerSecond,
        "plain TCP; with --baseline best, of the best of several buffer sizes"},
    Row{Test::kTcpLat, "tcp_lat", Test::kTcpLat, Unit::kMicroseconds, "plain TCP ping-pong"},
    Row{Test::kTcpRate, "tcp_rate", Test::kTcpRate, Unit::kOperationsPerSecond, "plain TCP frames, a send() for each"},
    Row{Test::kTcpConnect, "tcp_connect", Test::kTcpConnect, Unit::kOperationsPerSecond,
        "TCP connect and one octet there and back"},
    Row{Test::kTcpRpcNull, "tcp_rpc_null", Test::kTcpRpcNull, Unit::kOperationsPerSecond,
        "NULL Calls over plain TCP, with record marks"},
    Row{Test::kTcpRpcRead, "tcp_rpc_read", Test::kTcpRpcRead, Unit::kOctetsPerSecond,
        "Calls over plain TCP with large results"},
    Row{Test::kTcpRpcWrite, "tcp_rpc_write", Test::kTcpRpcWrite, Unit::kOctetsPerSecond,
        "Calls over plain TCP with large arguments"},
    Row{Test::kWriteBw, "write_bw", Test::kTcpBw, Unit::kOctetsPerSecond, "RDMA Write"},
    Row{Test::kReadBw, "read_bw", Test::kTcpBw, Unit::kOctetsPerSecond, "RDMA Read"},
    Row{Test::kSendBw, "send_bw", Test::kTcpBw, Unit::kOctetsPerSecond, "Send, with credits"},
    Row{Test::kSendRate, "send_rate", Test::kTcpRate, Unit::kOperationsPerSecond, "small Sends, posted in lists"},
    Row{Test::kWriteLat, "write_lat", Test::kTcpLat, Unit::kMicroseconds, "RDMA Write ping-pong, watched in memory"},
    Row{Test::kReadLat, "read_lat", Test::kTcpLat, Unit::kMicroseconds, "RDMA Read, there and back halved"},
    Row{Test::kSendLat, "send_lat", Test::kTcpLat, Unit::kMicroseconds, "Send ping-pong"},
    Row{Test::kConnectRate, "connect_rate", Test::kTcpConnect, Unit::kOperationsPerSecond,
        "connections set up one after the other, with RTR"},
    Row{Test::kRpcNull, "rpc_null", Test::kTcpRpcNull, Unit::kOperationsPerSecond,
        "NULL Calls over RPC-over-RDMA, through the C++ API for RPC"},
    Row{Test::kRpcRead, "rpc_read", Test::kTcpRpcRead, Unit::kOctetsPerSecond, "the same with large results"},
    Row{Test::kRpcWrite, "rpc_write", Test::kTcpRpcWrite, Unit::kOctetsPerSecond, "the same with large arguments"},
};

const Row& row(Test test) {
  return *std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.test == test; });
}

constexpr std::uint32_t kMaxSize = 16U << 20;
constexpr std::uint32_t kMaxFrame = kMaxSize + (1U << 20);
constexpr std::size_t kMinRegion = 256 * 1024;  // small operations: what one system call may bring at a time
constexpr std::size_t kMaxRegion = std::size_t{1} << 30;

// Slots that a test needs, whatever its depth.
std::size_t least_slots(const Spec& s) {
  switch (baseline_of(s.test)) {
    case Test::kTcpLat:
      return 2 * kLatencyReceives;  // as many messages on their way in, and out of the other half
    case Test::kTcpRate:
      return 2 * std::size_t{s.list};  // one list is posted while the credits of the other are on their way back
    default:
      return 2;  // send_bw: the same with a list of one
  }
}

// Octets in the TCP stream of a Send of so many. With --fpdu emss FPDUs may be shorter, as the path will have it: then
// this is some per cent short for messages longer than a segment.
std::uint32_t framed_bytes(const Spec& s) {
  constexpr std::size_t kHeader = ddp::UntaggedHeader::kSize;
  const auto policy = s.fpdu == "16k" ? mpa::FpduPolicy::k16k : mpa::FpduPolicy::kMax;
  const std::size_t most = mpa::mulpdu_for(policy, 0) - kHeader;
  const std::size_t size = std::max<std::size_t>(s.size, 8);  // every message has room for a note
  const std::size_t last = (size - 1) % most + 1;
  return static_cast<std::uint32_t>((size - last) / most * mpa::fpdu_bytes(kHeader + most) +
                                    mpa::fpdu_bytes(kHeader + last));
}

void demand(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

}  // namespace

const std::vector<Test>& all_tests() {
  static const std::vector<Test> tests = [] {
    std::vector<Test> list;
    for (const Row& r : kRows) list.push_back(r.test);
    return list;
  }();
  return tests;
}

std::string_view name(Test test) {
  return row(test).name;
}
std::string_view describe(Test test) {
  return row(test).text;
}
Test baseline_of(Test test) {
  return row(test).baseline;
}
bool is_raw(Test test) {
  return baseline_of(test) == test;
}
Unit unit_of(Test test) {
  return row(test).unit;
}

std::optional<Test> test_named(std::string_view name) {
  const auto it = std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.name == name; });
  return it == kRows.end() ? std::nullopt : std::optional{it->test};
}

bool is_rpc(Test test) {
  const Test base = baseline_of(test);
  return base == Test::kTcpRpcNull || base == Test::kTcpRpcRead || base == Test::kTcpRpcWrite;
}

bool has_size(Test test) {
  return baseline_of(test) != Test::kTcpConnect && baseline_of(test) != Test::kTcpRpcNull;
}

std::vector<std::uint32_t> all_sizes() {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 2; size <= 8U << 20; size *= 2) sizes.push_back(size);
  return sizes;
}

std::vector<std::uint32_t> default_sizes(Test test) {
  if (unit_of(test) == Unit::kOctetsPerSecond) return {65536, 1048576};
  return {8};
}

std::uint32_t default_depth(Test test, std::uint32_t size) {
  constexpr std::uint32_t kRoom = 64U << 20;  // of memory, where there is a choice
  const std::uint32_t most = std::max(1U, kRoom / size);
  if (baseline_of(test) == Test::kTcpRate) return std::min(512U, most);
  if (is_rpc(test)) return 1;  // as callers that wait for each Reply
  if (unit_of(test) != Unit::kOctetsPerSecond) return std::min(256U, most);
  return size <= 65536 ? 32 : 16;  // as much as TCP holds; more only takes caches
}

std::uint32_t default_list(Test test, std::uint32_t depth) {
  const bool bulk = test == Test::kWriteBw || test == Test::kReadBw;
  return bulk ? std::max(1U, depth / 2) : 64;
}

std::size_t Spec::region_bytes() const {
  return std::max({std::size_t{depth}, least_slots(*this), (kMinRegion + size - 1) / size}) * size;
}

Spec baseline_spec(const Spec& spec) {
  Spec base = spec;
  base.test = baseline_of(spec.test);
  base.fetch = spec.test == Test::kReadBw;
  if (base.test == Test::kTcpRate) {
    if (!is_raw(spec.test)) base.size = framed_bytes(spec);
    base.call = base.size;
  }
  return base;
}

void to_json(nlohmann::json& j, const Spec& s) {
  j = {{"test", name(s.test)},
       {"size", s.size},
       {"depth", s.depth},
       {"threads", s.threads},
       {"list", s.list},
       {"call", s.call},
       {"receive", s.receive},
       {"crc", s.crc},
       {"markers", s.markers},
       {"manual", s.manual},
       {"direct", s.direct},
       {"stable", s.stable},
       {"llp", s.llp},
       {"sctp_packet", s.sctp_packet},
       {"fpdu", s.fpdu},
       {"profile", s.profile},
       {"cpu", s.cpu},
       {"nodelay", s.nodelay},
       {"fetch", s.fetch},
       {"milliseconds", s.milliseconds},
       {"congestion", s.congestion}};
}

void from_json(const nlohmann::json& j, Spec& s) {
  const auto test = test_named(j.at("test").get<std::string>());
  demand(test.has_value(), "unknown test");
  s.test = *test;
  j.at("size").get_to(s.size);
  j.at("depth").get_to(s.depth);
  j.at("threads").get_to(s.threads);
  j.at("list").get_to(s.list);
  j.at("call").get_to(s.call);
  j.at("receive").get_to(s.receive);
  j.at("crc").get_to(s.crc);
  j.at("markers").get_to(s.markers);
  j.at("manual").get_to(s.manual);
  j.at("direct").get_to(s.direct);
  j.at("stable").get_to(s.stable);
  j.at("llp").get_to(s.llp);
  j.at("sctp_packet").get_to(s.sctp_packet);
  j.at("fpdu").get_to(s.fpdu);
  j.at("profile").get_to(s.profile);
  j.at("congestion").get_to(s.congestion);
  j.at("cpu").get_to(s.cpu);
  j.at("nodelay").get_to(s.nodelay);
  j.at("fetch").get_to(s.fetch);
  j.at("milliseconds").get_to(s.milliseconds);
  const std::uint32_t most = is_raw(s.test) ? kMaxFrame : kMaxSize;
  demand(s.size >= 1 && s.size <= most, "size must be 1 to 16 Mi octets");
  demand(s.depth >= 1 && s.depth <= 4096, "depth must be 1 to 4096");
  demand(s.threads >= 1 && s.threads <= 64, "threads must be 1 to 64");
  demand(!is_rpc(s.test) || s.depth <= kMostRpcCalls, "depth of RPC tests must be 1 to 200");
  demand(!is_rpc(s.test) || !s.manual, "RPC tests go by threads of iwarp: leave out --progress manual");
  demand(s.list >= 1 && s.list <= s.depth, "list must be 1 to depth");
  demand(s.call >= 1 && s.call <= most, "call must be 1 to 16 Mi octets");
  demand(s.receive >= 1 && s.receive <= kMaxSize, "receive must be 1 to 16 Mi octets");
  demand(s.llp == "tcp" || s.llp == "sctp", "llp must be tcp or sctp");
  demand(s.llp == "tcp" || !is_rpc(s.test), "RPC tests go over TCP: leave out --llp sctp");
  demand(s.llp == "tcp" || s.threads == 1, "--llp sctp goes with one thread: a process has one SCTP");
  demand(s.sctp_packet >= 576 && s.sctp_packet <= 65507, "sctp_packet must be 576 to 65507 octets");
  demand(s.fpdu == "emss" || s.fpdu == "16k" || s.fpdu == "max", "fpdu must be emss, 16k or max");
  demand(stream::find_profile(s.profile) != nullptr, "there is no such profile");
  constexpr std::string_view kNameOctets = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  demand(s.congestion.size() <= 15 && s.congestion.find_first_not_of(kNameOctets) == std::string::npos,
         "congestion must be the name of a TCP congestion control, such as cubic");
  demand(s.cpu >= -1 && s.cpu < 1024, "cpu must be -1 to 1023");
  demand(s.milliseconds >= 1 && s.milliseconds <= kLongestSample.count(), "a sample must take 1 ms to an hour");
  demand(s.region_bytes() <= kMaxRegion, "size times depth must not exceed 1 GiB");
  demand(s.region_bytes() * s.threads <= 4 * kMaxRegion, "size times depth times threads must not exceed 4 GiB");
}

}  // namespace iwarp::tools::perf
