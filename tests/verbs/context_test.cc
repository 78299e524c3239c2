#include "iwarp/verbs/context.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/support/covers.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::Bytes;
using test::make_qp;

TEST(Context, ProtectionDomainsDiffer) {
  const auto context = std::make_shared<Context>();
  const ProtectionDomain a(context), b(context);
  const ProtectionDomain copy = a;
  EXPECT_NE(a.id(), b.id());
  EXPECT_EQ(copy.id(), a.id());
}

TEST(Context, StagsAreDistinctAndNotConsecutive) {
  COVERS("RFC5040-8.1.1-9");
  COVERS("RFC5042-6.1.1-7");
  const auto context = std::make_shared<Context>();
  std::array<std::byte, 16> memory{};
  std::set<std::uint32_t> seen;
  std::uint32_t last = 0;
  unsigned neighbours = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto stag = context->register_memory({.memory = memory, .base_to = 0, .pd = PdId{1}});
    ASSERT_TRUE(stag.ok());
    EXPECT_TRUE(seen.insert(raw(*stag)).second);
    if ((raw(*stag) >> 8) == (last >> 8) + 1) ++neighbours;
    last = raw(*stag);
  }
  EXPECT_LT(neighbours, 100U) << "a peer can guess the next STag";
}

// What the child of a fork says; it must not run the destructors of the test.
template <class Check>
int in_child(Check check) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Context, ObjectsRefuseToWorkInAForkedChild) {
  const auto context = std::make_shared<Context>();
  const ProtectionDomain pd(context);
  CompletionQueue cq(16);
  const auto qp = make_qp(pd, cq);
  Bytes memory(64);
  const auto mr = test::region(pd, memory);
  ASSERT_TRUE(context->alive());
  EXPECT_EQ(in_child([&] {
              if (context->alive()) return false;
              const auto send = qp->post_send(SendWr{.sges = test::sge(mr)});
              const auto recv = qp->post_recv(RecvWr{.sges = test::sge(mr)});
              const auto reg = MemoryRegion::register_memory(pd, memory, {});
              for (const Error& e : {send.error(), recv.error(), reg.error()}) {
                if (e.code != Errc::kInvalidArgument || std::string(e.why).find("fork()") == std::string::npos)
                  return false;
              }
              return true;
            }),
            0);
  EXPECT_TRUE(context->alive()) << "the parent goes on";
  EXPECT_TRUE(qp->post_recv(RecvWr{.sges = test::sge(mr)}).ok());
}

TEST(Context, AContextMadeInTheChildWorksThere) {
  const auto before = std::make_shared<Context>();
  EXPECT_EQ(in_child([] { return std::make_shared<Context>()->alive(); }), 0);
  EXPECT_TRUE(std::make_shared<Context>()->alive());
}

}  // namespace
}  // namespace iwarp::verbs
