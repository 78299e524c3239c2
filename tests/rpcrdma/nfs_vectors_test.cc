// Messages laid out by hand: NFS version 2, and operations of minor version 2 that Debian's kernels leave out.
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/nfs_compound.h"
#include "iwarp/rpcrdma/reply_bounds.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

using iwarp::test::Bytes;

class NfsVectors : public ::testing::Test {
 protected:
  const std::map<std::string, Bytes> all = iwarp::test::read_vectors("nfs-by-hand.hex");

  [[nodiscard]] const Bytes& call(const std::string& name) const { return all.at(name + "-call"); }
  [[nodiscard]] const Bytes& reply(const std::string& name) const { return all.at(name + "-reply"); }
  // The DDP-eligible data of a message, as text.
  static std::string text(const Bytes& message, const DdpItem& item) {
    std::string out;
    for (std::size_t i = 0; i < item.length; ++i) out += static_cast<char>(message.at(item.offset + i));
    return out;
  }
  [[nodiscard]] std::vector<std::string> arguments(const std::string& name) const {
    std::vector<std::string> out;
    ArgumentWalker walker(call(name));
    while (const auto item = walker.next()) out.push_back(text(call(name), *item));
    return out;
  }
  [[nodiscard]] std::vector<std::string> results(const std::string& name) const {
    std::vector<std::string> out;
    for (const DdpItem& item : ResultBinding::for_call(call(name)).items(reply(name)))
      out.push_back(text(reply(name), item));
    return out;
  }
};

TEST_F(NfsVectors, DataAndPathsAreEligibleAndNothingElse) {
  COVERS("RFC8267-4-1");
  COVERS("RFC8267-4-2");
  COVERS("RFC8267-4-3");
  COVERS("RFC8267-4-4");
  COVERS("RFC8267-4-5");
  COVERS("RFC8267-6.1-5");
  using Items = std::vector<std::string>;
  const std::map<std::string, std::pair<Items, Items>> eligible = {
      {"v2-read", {{}, {"hello"}}},
      {"v2-write", {{"goodbye"}, {}}},
      {"v2-readlink", {{}, {"../up/two"}}},
      {"v2-symlink", {{"../up/two"}, {}}},
      {"read-plus", {{}, {"tail of the file!"}}},
  };
  int seen = 0;
  for (const auto& [section, message] : all) {
    if (!section.ends_with("-call")) continue;
    const std::string name = section.substr(0, section.size() - 5);
    SCOPED_TRACE(name);
    const auto expected = eligible.contains(name) ? eligible.at(name) : std::pair<Items, Items>{};
    EXPECT_EQ(arguments(name), expected.first);
    EXPECT_EQ(results(name), expected.second);
    ++seen;
  }
  EXPECT_EQ(seen, 20);
}

// Or nothing behind an operation could be reduced.
TEST_F(NfsVectors, EveryOperationIsSteppedOverToTheLastOctet) {
  for (const auto& [section, message] : all) {
    if (section.starts_with("v2-")) continue;
    SCOPED_TRACE(section);
    const bool is_call = section.ends_with("-call");
    ReadCursor in(message);
    in.skip(is_call ? RpcCall::parse(message)->arguments_offset : RpcReply::parse(message)->results_offset);
    ASSERT_TRUE(skip_xdr(in, is_call ? "ow" : "wo"));
    const auto operations = in.be<std::uint32_t>();
    EXPECT_GE(operations, 3u);
    for (std::uint32_t i = 0; i < operations; ++i) {
      const auto op = in.be<std::uint32_t>();
      if (!is_call) {
        EXPECT_EQ(in.be<std::uint32_t>(), 0u);
      }
      ASSERT_TRUE(is_call ? skip_arguments(in, op) : skip_results(in, op)) << op;
    }
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.remaining(), 0u);
  }
}

TEST_F(NfsVectors, RepliesFitIntoWhatIsEstimated) {
  COVERS("RFC8267-3-3");
  for (const auto& [section, message] : all) {
    if (!section.ends_with("-call")) continue;
    const std::string name = section.substr(0, section.size() - 5);
    SCOPED_TRACE(name);
    const auto bound = reply_bound(message);
    EXPECT_EQ(bound.has_value(), name != "getxattr");  // whose values have no limit
    EXPECT_GE(bound.value_or(SIZE_MAX), reply(name).size());
    EXPECT_FALSE(reply_guess(message));
    for (std::size_t n = 0; n < message.size(); ++n) {
      const auto shorter = reply_bound(ConstBytes(message).first(n));
      EXPECT_TRUE(!shorter || name.starts_with("v2-")) << n;
    }
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma
