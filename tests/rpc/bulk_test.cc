// Bulk data by chunk, where a binding says which they are; and the same program where nobody does.
#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

using rpcrdma::BulkItem;
using rpcrdma::DeclaredBinding;

std::shared_ptr<const DeclaredBinding> binding() {
  auto made = std::make_shared<DeclaredBinding>();
  made->add({.program = kProgram, .version = 2, .procedure = 1, .offset = 4}).value();
  made->add({.program = kProgram,
             .version = 1,
             .procedure = kMake,
             .where = BulkItem::Where::kResults,
             .offset = 4,
             .max_bytes = 1u << 20,
             .arm = BulkItem::Arm{0, 0}})
      .value();
  return made;
}

using Case = std::tuple<Carrier, bool, bool>;

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto [carrier, client, server] = info.param;
  return std::string(carrier == Carrier::kMemory ? "Memory" : "Iwarp") + (client ? "ClientDeclares" : "") +
         (server ? "ServerDeclares" : "");
}

class Bulk : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Over, Bulk,
                         ::testing::Combine(::testing::Values(Carrier::kMemory, Carrier::kIwarp), ::testing::Bool(),
                                            ::testing::Bool()),
                         name_of);

constexpr std::uint32_t kSizes[] = {0, 1, 511, 3000, 4096, 65537, 1u << 20};

void declare(bool client, bool server, ClientOptions& c, ServerOptions& s) {
  if (client) c.requester.declared = binding();
  if (server) s.responder.declared = binding();
  s.responder.enforce_binding = server;
}

TEST_P(Bulk, ResultsComeWhole) {
  COVERS("RFC8166-3.4.4.3-2");
  const auto [carrier, client_declares, server_declares] = GetParam();
  if (client_declares && !server_declares)
    GTEST_SKIP() << "a server has to know where the results of a Write chunk are";
  ClientOptions options;
  ServerOptions served{.threads = 2};
  declare(client_declares, server_declares, options, served);
  World w(carrier, served);
  Client client(w.engine, w.transport, options);
  for (const std::uint32_t size : kSizes) {
    const auto made = client.call(proc(kMake), words({size}));
    ASSERT_TRUE(made.ok()) << size << ' ' << made.error().why;
    ASSERT_EQ(word(made->results(), 1), size);
    EXPECT_TRUE(std::ranges::equal(made->results().subspan(8, size), pattern(size, 7))) << size;
  }
}

TEST_P(Bulk, ArgumentsComeWhole) {
  COVERS("RFC8166-3.4.4.3-2");
  const auto [carrier, client_declares, server_declares] = GetParam();
  ClientOptions options;
  ServerOptions served{.threads = 2};
  declare(client_declares, server_declares, options, served);
  World w(carrier, served);
  w.server.serve(kProgram, 2, [](Call call) -> awaitable<Answer> { co_return copy(call.arguments()); });
  Client client(w.engine, w.transport, options);
  for (const std::uint32_t size : kSizes) {
    Octets arguments = words({77});
    const Octets item = opaque(pattern(size, 2));
    arguments.insert(arguments.end(), item.begin(), item.end());
    arguments.resize(arguments.size() + 8);
    store_be(std::span(arguments).last(4), size);
    const auto put = client.call({kProgram, 2, 1}, arguments);
    ASSERT_TRUE(put.ok()) << size << ' ' << put.error().why;
    EXPECT_TRUE(std::ranges::equal(put->results(), arguments)) << size;
  }
}

TEST(DeclaredBinding, RefusesWhatItCannotMean) {
  DeclaredBinding b;
  EXPECT_EQ(b.add({.program = 100003, .version = 3, .procedure = 7}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(b.add({.program = kProgram, .offset = 3}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(b.add({.program = kProgram, .arm = BulkItem::Arm{2, 0}}).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(b.add({.program = kProgram}).ok());
  EXPECT_EQ(b.add({.program = kProgram, .offset = 8}).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(b.add({.program = kProgram, .where = BulkItem::Where::kResults}).ok());
}

}  // namespace
}  // namespace iwarp::rpc::test
