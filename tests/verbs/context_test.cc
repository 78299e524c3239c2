#include "iwarp/verbs/context.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <vector>

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

std::vector<std::uint32_t> stags_of_a_new_context(unsigned count) {
  const auto context = std::make_shared<Context>();
  std::array<std::byte, 16> memory{};
  std::vector<std::uint32_t> out;
  for (unsigned i = 0; i < count; ++i) {
    const auto stag = context->register_memory({.memory = memory, .base_to = 0, .pd = PdId{1}});
    EXPECT_TRUE(stag.ok());
    if (stag.ok()) out.push_back(raw(*stag));
  }
  return out;
}

// Not by chance: 8 random bits for each key, and more for the index, each time anew.
TEST(Context, StagsComeFromARandomSource) {
  COVERS("RFC5042-6.1.1-7");
  const auto one = stags_of_a_new_context(1000), other = stags_of_a_new_context(1000);
  std::set<std::uint32_t> keys, indices;
  std::set<std::uint64_t> runs;
  for (std::size_t i = 0; i < 1000; ++i) {
    keys.insert(one[i] & 0xFF);
    if (i < 8) indices.insert(one[i] >> 8), indices.insert(other[i] >> 8);
    std::uint64_t run = 0;
    for (std::size_t k = i; k < i + 8; ++k) run = run << 8 | (one[k % 1000] & 0xFF);
    EXPECT_TRUE(runs.insert(run).second) << "the keys begin again at " << i;
  }
  EXPECT_GT(keys.size(), 200U);
  EXPECT_GE(indices.size(), 15U) << "two contexts hand out the same indices";
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
