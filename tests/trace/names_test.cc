#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "iwarp/trace/rpc_names.h"
#include "tests/support/vectors.h"

namespace iwarp::trace {
namespace {

constexpr std::uint32_t kNfs = 100003;

// Every operation and every status of RFC 7863's XDR has the name it has there.
TEST(TraceNames, AreThoseOfTheXdr) {
  std::ifstream in(test::vector_path("rpcrdma/nfs42.x"));
  ASSERT_TRUE(in);
  const std::regex op(R"(^\s*OP_([A-Z0-9_]+)\s*=\s*(\d+).*)"), status(R"(^\s*(NFS4ERR_[A-Z0-9_]+)\s*=\s*(\d+).*)");
  int ops = 0, statuses = 0;
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (std::regex_match(line, m, op)) {
      ++ops;
      const auto number = static_cast<std::uint32_t>(std::stoul(m[2]));
      EXPECT_EQ(nfs4_op_name(number, m[1].str().starts_with("CB_")), m[1].str());
    } else if (std::regex_match(line, m, status)) {
      ++statuses;
      const auto number = static_cast<std::uint32_t>(std::stoul(m[2]));
      EXPECT_EQ(nfs_status_name(StatusKind::kNfs4, number), m[1].str());
    }
  }
  EXPECT_EQ(ops, 84);
  EXPECT_GT(statuses, 100);
}

TEST(TraceNames, Operations) {
  EXPECT_EQ(nfs4_op_name(75, false), "REMOVEXATTR");
  EXPECT_EQ(nfs4_op_name(76, false), "76");
  EXPECT_EQ(nfs4_op_name(2, false), "2");
  EXPECT_EQ(nfs4_op_name(0xFFFFFFFF, true), "4294967295");
  EXPECT_EQ(nfs4_op_name(16, true), "16");
}

TEST(TraceNames, Statuses) {
  EXPECT_EQ(nfs_status_name(StatusKind::kNfs2, 0), "NFS_OK");
  EXPECT_EQ(nfs_status_name(StatusKind::kNfs3, 2), "NFS3ERR_NOENT");
  EXPECT_EQ(nfs_status_name(StatusKind::kNfs3, 10008), "NFS3ERR_JUKEBOX");
  EXPECT_EQ(nfs_status_name(StatusKind::kNfs4, 10008), "NFS4ERR_DELAY");
  EXPECT_EQ(nfs_status_name(StatusKind::kNfs4, 10095), "NFS4ERR_NOXATTR");
  EXPECT_EQ(nfs_status_name(StatusKind::kMount, 13), "MNT3ERR_ACCES");
  EXPECT_EQ(nfs_status_name(StatusKind::kNfs4, 77), "77");
}

TEST(TraceNames, ProgramsAndProcedures) {
  EXPECT_EQ(program_name(kNfs), "NFS");
  EXPECT_EQ(program_name(99), "99");
  EXPECT_EQ(procedure_name(kNfs, 2, 17), "STATFS");
  EXPECT_EQ(procedure_name(kNfs, 3, 21), "COMMIT");
  EXPECT_EQ(procedure_name(kNfs, 3, 22), "22");
  EXPECT_EQ(procedure_name(kNfs, 4, 1), "COMPOUND");
  EXPECT_EQ(procedure_name(kNfs, 5, 1), "1");
  EXPECT_EQ(procedure_name(kMountProgram, 3, 1), "MNT");
  EXPECT_EQ(procedure_name(100021, 4, 23), "FREE_ALL");
  EXPECT_EQ(procedure_name(100021, 4, 17), "17");
  EXPECT_EQ(procedure_name(kNfsAclProgram, 3, 2), "SETACL");
  EXPECT_EQ(procedure_name(100000, 2, 3), "GETPORT");
  EXPECT_EQ(procedure_name(100000, 4, 3), "GETADDR");
  EXPECT_EQ(program_name(0x40000000) + procedure_name(0x40000000, 1, 1), "NFS_CBCB_COMPOUND");
  EXPECT_TRUE(is_compound(0x40000000, 1, 1) && is_compound(kNfs, 4, 1));
  EXPECT_FALSE(is_compound(kNfs, 3, 1) || is_compound(kNfs, 4, 0));
}

TEST(TraceNames, RpcItself) {
  EXPECT_EQ(accept_stat_name(4), "GARBAGE_ARGS");
  EXPECT_EQ(accept_stat_name(6), "6");
  EXPECT_EQ(auth_stat_name(5), "AUTH_TOOWEAK");
  EXPECT_EQ(flavor_name(6), "RPCSEC_GSS");
  EXPECT_EQ(flavor_name(4), "4");
}

}  // namespace
}  // namespace iwarp::trace
