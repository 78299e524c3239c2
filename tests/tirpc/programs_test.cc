// The rpcgen example as its users run it: server and client are two processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/support/covers.h"

namespace iwarp::tirpc::test {
namespace {

#ifdef IWARP_EXAMPLES

// What a command of the shell prints, both kinds of output.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  std::array<char, 4096> some;
  while (const std::size_t n = std::fread(some.data(), 1, some.size(), pipe)) out.append(some.data(), n);
  const int status = ::pclose(pipe);
  if (status != 0) out += "status " + std::to_string(WEXITSTATUS(status)) + "\n";
  return out;
}

const std::string kServer = std::string(IWARP_EXAMPLES) + "/example_store_server ";
const std::string kClient = "timeout 60 " + std::string(IWARP_EXAMPLES) + "/example_store_client ";

// What the client prints when it calls a server of its own.
std::string both_over(const std::string& transport) {
  return output_of("S=$(mktemp); timeout 60 " + kServer + transport +
                   " >$S & trap 'kill %1; rm $S' EXIT; i=0; "
                   "while ! grep -q listening $S && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done; " +
                   kClient + transport + " 127.0.0.1 $(sed -n 's/listening on port //p' $S)");
}

TEST(TirpcPrograms, TcpAndRdmaGiveTheSameAnswers) {
  const std::string tcp = both_over("tcp");
  const std::string rdma = both_over("rdma");
  EXPECT_NE(tcp.find("longest: put 0, get 0, 4194304 octets unchanged\n"), std::string::npos) << tcp;
  EXPECT_NE(tcp.find("notes: 20100\n"), std::string::npos) << tcp;
  EXPECT_EQ(tcp, rdma);
}

// In network and mount namespaces of its own, where rpcbind disturbs nobody.
TEST(TirpcPrograms, RpcinfoListsTheServiceAndTheClientFindsIt) {
  const std::string here =
      "unshare -nm sh -c 'mount -t tmpfs none /run && ip link set lo up && command -v rpcbind rpcinfo'";
  if (output_of("timeout 20 " + here + " >/dev/null").find("status") != std::string::npos)
    GTEST_SKIP() << "needs the right to make namespaces, rpcbind and rpcinfo";
  // What a server says that is listed under a netid, then rpcinfo, then a client that finds it at that address.
  const auto listed = [](const std::string& netid, const std::string& host) {
    return output_of(
        "timeout 60 unshare -nm sh -c 'mount -t tmpfs none /run; ip link set lo up; "
        "rpcbind -f >/dev/null 2>&1 & B=$!; i=0; while [ ! -S /run/rpcbind.sock ] && [ $i -lt 100 ]; do sleep 0.1; "
        "i=$((i+1)); done; sleep 0.5; " +
        kServer + netid +
        " rpcbind >/run/out 2>&1 & S=$!; i=0; while ! grep -q . /run/out 2>/dev/null && [ $i -lt 100 ]; do sleep "
        "0.1; i=$((i+1)); done; "
        "cat /run/out; rpcinfo 127.0.0.1 | grep 536870980; " +
        kClient + "rdma " + host + " 0; kill $S $B'");
  };
  for (const auto& [netid, host] : {std::pair("rdma", "127.0.0.1"), std::pair("rdma6", "::1")}) {
    if (std::string(netid) == "rdma6" && !std::filesystem::exists("/proc/net/if_inet6")) continue;  // no IPv6 here
    const std::string out = listed(netid, host);
    EXPECT_NE(out.find(netid + std::string(" ")), std::string::npos) << out;
    EXPECT_NE(out.find("536870980    1"), std::string::npos) << out;
    EXPECT_NE(out.find("longest: put 0, get 0, 4194304 octets unchanged\n"), std::string::npos) << out;
  }
}

#endif

}  // namespace
}  // namespace iwarp::tirpc::test
