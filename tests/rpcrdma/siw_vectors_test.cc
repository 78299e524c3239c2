// Messages recorded between two Linux kernels.
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using test::Bytes;

class SiwVectors : public ::testing::Test {
 protected:
  SiwVectors() : vectors_(test::read_vectors("siw-nfs41.hex")) {
    vectors_.merge(test::read_vectors("siw-nfs3-nfs40.hex"));
  }

  const Bytes& raw(const std::string& name) { return vectors_.at(name); }
  Header header(const std::string& name) { return std::get<ParsedHeader>(Header::parse(raw(name))).header; }
  ConstBytes payload(const std::string& name) {
    return ConstBytes(raw(name)).subspan(std::get<ParsedHeader>(Header::parse(raw(name))).payload_offset);
  }

  std::map<std::string, Bytes> vectors_;
};

TEST_F(SiwVectors, HeadersParseAndEncodeToTheSameOctets) {
  COVERS("RFC8166-4.7-7");
  COVERS("RFC8166-4-1");
  int headers = 0;
  for (const auto& [name, message] : vectors_) {
    if (name.ends_with("-payload")) continue;
    SCOPED_TRACE(name);
    const ParseResult result = Header::parse(message);
    const auto* parsed = std::get_if<ParsedHeader>(&result);
    ASSERT_NE(parsed, nullptr);
    Bytes out(parsed->header.encoded_size());
    ASSERT_EQ(parsed->header.write_to(out), out.size());
    EXPECT_EQ(out, Bytes(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(out.size())));
    EXPECT_EQ(parsed->payload_offset, out.size());
    const bool call = name.ends_with("-call");
    EXPECT_EQ(call ? check_call(parsed->header) : check_reply(parsed->header), std::nullopt);
    if (parsed->header.proc == Proc::kMsg) {
      const ConstBytes rpc = ConstBytes(message).subspan(out.size());
      EXPECT_TRUE(xid_matches(parsed->header, rpc));
      EXPECT_EQ(rpc_direction(rpc), call ? RpcDirection::kCall : RpcDirection::kReply);
      EXPECT_TRUE(call ? RpcCall::parse(rpc).ok() : RpcReply::parse(rpc).ok());
    }
    ++headers;
  }
  EXPECT_GE(headers, 20);
}

TEST_F(SiwVectors, ReadsFindTheReducedItem) {
  COVERS("RFC8267-4-3");
  COVERS("RFC8267-6.1-3");
  for (const std::string version : {"v3", "v40", "v41"}) {
    SCOPED_TRACE(version);
    const auto binding = ResultBinding::for_call(payload(version + "-read-call"));
    ASSERT_EQ(binding.max_items(), 1u);
    const Header call = header(version + "-read-call");
    EXPECT_EQ(binding.expectation(0),
              (ResultBinding::Expectation{ResultBinding::Expectation::Kind::kRead,
                                          static_cast<std::uint32_t>(call.write_list[0].length())}));
    // The data went by RDMA Write: the item is described, but is not in the message.
    const ConstBytes reply = payload(version + "-read-reply");
    ResultWalker walker(binding, reply);
    const auto item = walker.next();
    ASSERT_TRUE(item);
    EXPECT_EQ(item->length, header(version + "-read-reply").write_list[0].length());
    EXPECT_FALSE(item->in_message);
    walker.mark_absent();
    EXPECT_EQ(walker.next(), std::nullopt);
    EXPECT_TRUE(binding.items(reply).empty());
    // Rebuilt, it is found where it was inserted.
    Bytes whole(reply.begin(), reply.end());
    whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(item->offset),
                 static_cast<std::size_t>(item->padded_length()), std::byte{0x5a});
    const DdpItems items = binding.items(whole);
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0].offset, item->offset);
    EXPECT_TRUE(items[0].in_message);
  }
}

TEST_F(SiwVectors, WritesHaveTheirReadChunkAtTheItemsPosition) {
  COVERS("RFC8267-4-1");
  COVERS("RFC8267-6.1-1");
  COVERS("RFC8166-3.4.5-2");
  COVERS("RFC8166-4.3.1.1-1");
  for (const std::string name : {"v3-write-call", "v40-write-call", "v41-write-call"}) {
    SCOPED_TRACE(name);
    const Header h = header(name);
    ArgumentWalker walker(payload(name));
    const auto item = walker.next();
    ASSERT_TRUE(item);
    EXPECT_EQ(item->position, h.read_list[0].position);
    EXPECT_EQ(item->length, read_chunk_length(h.read_list, h.read_list[0].position));
    EXPECT_FALSE(item->in_message);
    walker.mark_absent();
    EXPECT_EQ(walker.next(), std::nullopt);
  }
}

TEST_F(SiwVectors, ReadlinksInReplyChunksAreWhole) {
  COVERS("RFC8267-4-4");
  COVERS("RFC8267-6.1-4");
  for (const std::string version : {"v3", "v41"}) {
    SCOPED_TRACE(version);
    const auto binding = ResultBinding::for_call(payload(version + "-readlink-call"));
    ASSERT_EQ(binding.max_items(), 1u);
    EXPECT_EQ(binding.expectation(0).kind, ResultBinding::Expectation::Kind::kReadlink);
    const Bytes& reply = raw(version + "-readlink-payload");
    const DdpItems items = binding.items(reply);
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0].offset + items[0].padded_length(), reply.size());
  }
}

TEST_F(SiwVectors, OtherProceduresHaveNoItems) {
  COVERS("RFC8267-4-5");
  COVERS("RFC8267-6.1-5");
  for (const char* name :
       {"null-call", "v41-exchange-id-call", "v41-create-session-call", "v41-readdir-call", "v41-open-call"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(ResultBinding::for_call(payload(name)).max_items(), 0u);
    EXPECT_EQ(ArgumentWalker(payload(name)).next(), std::nullopt);
  }
}

TEST_F(SiwVectors, ClampsTheBackChannelAndNothingElse) {
  COVERS("RFC8267-6.5.2-4");
  const ConstBytes recorded_call = payload("v41-create-session-call");
  const auto changed = [](ConstBytes before, const Bytes& after) {
    std::vector<std::size_t> words;
    for (std::size_t at = 0; at < before.size(); at += 4) {
      if (load_be<std::uint32_t>(before.subspan(at)) != load_be<std::uint32_t>(ConstBytes(after).subspan(at)))
        words.push_back(at);
    }
    return words;
  };
  constexpr std::uint32_t kLimit = 996;
  Bytes call(recorded_call.begin(), recorded_call.end());
  EXPECT_TRUE(clamp_back_channel(call, kLimit));
  const auto in_call = changed(recorded_call, call);
  ASSERT_EQ(in_call.size(), 2u);  // over RDMA Linux asks for 4096 - 28, the same, and 0 octets
  EXPECT_EQ(in_call[1], in_call[0] + 4);
  for (const std::size_t at : in_call) {
    EXPECT_EQ(load_be<std::uint32_t>(recorded_call.subspan(at)), 4068u);
    EXPECT_EQ(load_be<std::uint32_t>(ConstBytes(call).subspan(at)), kLimit);
  }

  Bytes untouched(recorded_call.begin(), recorded_call.end());
  EXPECT_TRUE(clamp_back_channel(untouched, 1 << 20));
  EXPECT_TRUE(changed(recorded_call, untouched).empty());

  const ConstBytes other = payload("v41-open-call");
  Bytes copy(other.begin(), other.end());
  EXPECT_FALSE(clamp_back_channel(copy, kLimit));
  EXPECT_TRUE(changed(other, copy).empty());
}

}  // namespace
}  // namespace iwarp::rpcrdma
