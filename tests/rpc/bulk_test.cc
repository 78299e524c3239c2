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

class Bulk : public ::testing::TestWithParam<std::tuple<Carrier, bool, bool>> {};
INSTANTIATE_TEST_SUITE_P(Over, Bulk,
                         ::testing::Combine(::testing::Values(Carrier::kMemory, Carrier::kIwarp), ::testing::Bool(),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           const auto [carrier, client, server] = info.param;
                           return std::string(carrier == Carrier::kMemory ? "Memory" : "Iwarp") +
                                  (client ? "ClientDeclares" : "") + (server ? "ServerDeclares" : "");
                         });

TEST_P(Bulk, ComesWhole) {
  COVERS("RFC8166-3.4.4.3-2");
  const auto [carrier, client_declares, server_declares] = GetParam();
  ServerOptions server{.threads = 2};
  if (server_declares) server.responder.declared = binding();
  server.responder.enforce_binding = server_declares;
  ClientOptions options;
  if (client_declares) options.requester.declared = binding();
  if (client_declares && !server_declares) server.responder.enforce_binding = false;
  World w(carrier, server);
  w.server.serve(kProgram, 2, [](Call call) -> awaitable<Answer> { co_return copy(call.arguments().last(8)); });
  Client client(w.engine, w.transport, options);
  for (const std::uint32_t size : {0u, 1u, 511u, 3000u, 4096u, 65537u, 1u << 20}) {
    const auto made = client.call(proc(kMake), words({size}));
    ASSERT_TRUE(made.ok()) << size << ' ' << made.error().why;
    ASSERT_EQ(word(made->results(), 1), size);
    EXPECT_TRUE(std::ranges::equal(made->results().subspan(8, size), pattern(size, 7))) << size;

    Octets arguments = words({77});
    const Octets item = opaque(pattern(size, 2));
    arguments.insert(arguments.end(), item.begin(), item.end());
    arguments.resize(arguments.size() + 8);
    store_be(std::span(arguments).last(4), size);
    const auto put = client.call({kProgram, 2, 1}, arguments);
    ASSERT_TRUE(put.ok()) << size << ' ' << put.error().why;
    EXPECT_TRUE(put->success());
    EXPECT_EQ(word(put->results(), 1), size);
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
