// `iwarp trace --html`: one file, and nothing from the wire becomes markup.
#include "tools/trace_html.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "iwarp/trace/packet_maker.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/segments.h"
#include "tests/tools/capture_file.h"
#include "tests/tools/recording.h"
#include "tests/trace/endpoints.h"
#include "tests/trace/startup.h"

namespace iwarp::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using tools::kMaxTracePageRecords;
using tools::kTracePage;
using tools::script_safe;

constexpr std::string_view kHostile = "</script><img src=x onerror=alert(1)>";

// An NFS client mounts a path of this name.
std::vector<trace::Packet> packets() {
  trace::Endpoint server = trace::kServer4;
  server.port = 20049;
  trace::PacketMaker maker(trace::kClient4, server);
  std::vector<trace::Packet> out = maker.handshake(trace::Direction::kTx);
  const auto give = [&](trace::Direction d, const Bytes& bytes) {
    for (trace::Packet& p : maker.data(d, bytes)) out.push_back(std::move(p));
  };
  give(trace::Direction::kTx, trace::request(true));
  give(trace::Direction::kRx, trace::reply(true));
  Xdr call = nfs_call(3, 1, 100005).w(static_cast<std::uint32_t>(kHostile.size()));
  call.raw(std::as_bytes(std::span(kHostile))).pad();
  const Bytes message = Xdr().words({kTestXid, 1, 32, 0, 0, 0, 0}).raw(call.bytes()).bytes();
  give(trace::Direction::kTx, fpdu(send_segment(message), true));
  return out;
}

std::string read_text(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

nlohmann::json data_of(const std::string& page) {
  constexpr std::string_view kBegin = "id=\"data\">";
  const std::size_t begin = page.find(kBegin) + kBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(TraceHtml, NothingFromTheWireBecomesMarkup) {
  const Scratch scratch("trace-html");
  write_capture(scratch.file("pcap"), packets());
  const Finished f = run({"trace", scratch.file("pcap"), "--html", scratch.file("html")});
  EXPECT_EQ(f.code, 0) << f.output;
  EXPECT_EQ(f.output, "");
  const std::string page = read_text(scratch.file("html"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = page.find("</script", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 2U);
  const auto data = data_of(page);
  EXPECT_THAT(data.at("connections"), SizeIs(1));
  EXPECT_EQ(data.at("left_out"), 0);
  bool seen = false;
  for (const auto& r : data.at("records")) seen = seen || r.at("fields").value("path", "") == kHostile;
  EXPECT_TRUE(seen);
}

TEST(TraceHtml, LoadsNothing) {
  const std::string page = kTracePage;
  for (const char* what : {"src=", "href", "@import", "url(", "fetch(", "innerHTML", "document.write", "eval("}) {
    EXPECT_THAT(page, Not(HasSubstr(what)));
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("@DATA@"));
}

TEST(TraceHtml, ConnectionsHaveNamesWhateverIsFiltered) {
  const Scratch scratch("trace-html");
  write_capture(scratch.file("pcap"), packets());
  EXPECT_EQ(run({"trace", scratch.file("pcap"), "--layer", "rpc", "--html", scratch.file("html")}).code, 0);
  const auto data = data_of(read_text(scratch.file("html")));
  EXPECT_THAT(data.at("records"), SizeIs(1));
  EXPECT_EQ(data.at("connections").at(0).at("client"), "10.0.0.1:4000");
}

TEST(TraceHtml, SaysWhatIsLeftOut) {
  const Scratch scratch("trace-html");
  std::vector<trace::Packet> all = packets();
  trace::Endpoint server = trace::kServer4;
  server.port = 20049;
  trace::PacketMaker maker(trace::kClient6, server);
  for (trace::Packet& p : maker.handshake(trace::Direction::kTx)) all.push_back(std::move(p));
  for (trace::Packet& p : maker.data(trace::Direction::kTx, trace::request(false))) all.push_back(std::move(p));
  for (trace::Packet& p : maker.data(trace::Direction::kRx, trace::reply(false))) all.push_back(std::move(p));
  Bytes many;
  for (std::size_t n = 0; n < kMaxTracePageRecords; ++n) {
    const Bytes one = fpdu(write_segment(Stag{5}, n, {}), false);
    many.insert(many.end(), one.begin(), one.end());
  }
  for (trace::Packet& p : maker.data(trace::Direction::kTx, many)) all.push_back(std::move(p));
  write_capture(scratch.file("pcap"), all);
  EXPECT_EQ(run({"trace", scratch.file("pcap"), "--html", scratch.file("html")}).code, 0);
  const auto data = data_of(read_text(scratch.file("html")));
  EXPECT_THAT(data.at("records"), SizeIs(kMaxTracePageRecords));
  EXPECT_GT(data.at("left_out"), 0);
}

TEST(TraceHtml, AFileThatCannotBeWrittenIsAnError) {
  const Scratch scratch("trace-html");
  write_capture(scratch.file("pcap"), packets());
  for (const char* file : {"/nonexistent/page.html", "/dev/full"}) {
    const Finished f = run({"trace", scratch.file("pcap"), "--html", file});
    EXPECT_EQ(f.code, 1);
    EXPECT_THAT(f.output, HasSubstr(std::string("cannot write ") + file));
  }
}

TEST(TraceHtml, ScriptSafe) {
  EXPECT_EQ(script_safe(R"(["</script>", "<!--"])"), R"(["\u003c/script>", "\u003c!--"])");
}

}  // namespace
}  // namespace iwarp::test
