// CLIENT and SVCXPRT in one process: what libtirpc's own calls make of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <rpc/rpc.h>
#include <sys/select.h>

#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "iwarp/tirpc/options.h"
#include "iwarp/tirpc/rpcbind.h"
#include "iwarp/tirpc/rpcrdma.h"
#include "tests/support/eventually.h"
#include "tests/tirpc/service.h"

namespace iwarp::tirpc::test {
namespace {

constexpr timeval kPatience{30, 0};
constexpr timeval kAtOnce{0, 0};

std::mutex mu;
std::map<int, int> executed;  // by argument

// An int, and a good deal behind it.
bool_t long_argument(XDR* xdrs, int* value) {
  thread_local std::vector<char> octets(200000, 'x');
  return xdr_int(xdrs, value) && xdr_opaque(xdrs, octets.data(), static_cast<u_int>(octets.size()));
}

// Procedure 1 doubles, 2 and 4 have no answer, 3 wants its time. The argument of 4 is a long one.
void dispatch(svc_req* request, SVCXPRT* xprt) {
  int value = 0;
  if (request->rq_proc == 0) {
    svc_sendreply(xprt, reinterpret_cast<xdrproc_t>(xdr_int), &value);
    return;
  }
  const bool is_long = request->rq_proc == 4;
  if (!svc_getargs(xprt, reinterpret_cast<xdrproc_t>(is_long ? long_argument : xdr_int), &value))
    return svcerr_decode(xprt);
  {
    const std::lock_guard lock(mu);
    ++executed[value];
  }
  if (request->rq_proc == 3) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  int doubled = value * 2;
  if (request->rq_proc != 2 && !is_long) svc_sendreply(xprt, reinterpret_cast<xdrproc_t>(xdr_int), &doubled);
}

class Service : public RunningService {
 public:
  explicit Service(unsigned threads, const char* host = "127.0.0.1") : RunningService(fresh(threads), dispatch, host) {}

 private:
  static unsigned fresh(unsigned threads) {
    const std::lock_guard lock(mu);
    executed.clear();
    return threads;
  }
};

clnt_stat call(CLIENT* clnt, rpcproc_t procedure, int value, int* result, timeval patience = kPatience) {
  return clnt_call(clnt, procedure, reinterpret_cast<xdrproc_t>(xdr_int), reinterpret_cast<char*>(&value),
                   result == nullptr ? nullptr : reinterpret_cast<xdrproc_t>(xdr_int), reinterpret_cast<char*>(result),
                   patience);
}

TEST(TirpcHandles, EveryCallIsExecutedOnceWhateverThreadsServe) {
  Service service(4);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      CLIENT* const clnt = service.client();
      for (int i = 0; clnt != nullptr && i < 100; ++i) {
        int result = 0;
        const int value = t * 1000 + i + 1;
        if (call(clnt, 1, value, &result) != RPC_SUCCESS || result != value * 2) ++wrong;
      }
      if (clnt == nullptr) {
        ++wrong;
      } else {
        clnt_destroy(clnt);
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong, 0);
  const std::lock_guard lock(mu);
  EXPECT_EQ(executed.size(), 400u);
  for (const auto& [value, times] : executed) EXPECT_EQ(times, 1) << value;
}

// Programs with a loop of their own over select(2).
TEST(TirpcHandles, SvcGetreqsetServes) {
  Service service(0);
  std::atomic<bool> over{false};
  std::thread loop([&] {
    while (!over) {
      fd_set ready = svc_fdset;
      timeval patience{0, 20000};
      if (::select(service.xprt()->xp_fd + 1, &ready, nullptr, nullptr, &patience) > 0) svc_getreqset(&ready);
    }
  });
  EXPECT_TRUE(FD_ISSET(service.xprt()->xp_fd, &svc_fdset));
  CLIENT* const clnt = service.client();
  for (int i = 1; clnt != nullptr && i <= 100; ++i) {
    int result = 0;
    EXPECT_EQ(call(clnt, 1, i, &result), RPC_SUCCESS);
    EXPECT_EQ(result, 2 * i);
  }
  EXPECT_NE(clnt, nullptr);
  if (clnt != nullptr) clnt_destroy(clnt);
  over = true;
  loop.join();
}

TEST(TirpcHandles, BatchedCallsAreNotLost) {
  Service service(1);
  CLIENT* const clnt = service.client();
  ASSERT_NE(clnt, nullptr);
  for (int i = 1; i <= 300; ++i) ASSERT_EQ(call(clnt, 2, i, nullptr, kAtOnce), RPC_SUCCESS) << i;
  int result = 0;
  EXPECT_EQ(call(clnt, 1, 1, &result, kAtOnce), RPC_TIMEDOUT);  // sent, and its answer is not waited for
  clnt_destroy(clnt);
  EXPECT_TRUE(iwarp::test::eventually([] {
    const std::lock_guard lock(mu);
    return executed.size() == 300 && executed[1] == 2;
  }));
}

// The service fetches those by RDMA Read, and the handle goes at once.
TEST(TirpcHandles, LongBatchedCallsAreNotLost) {
  Service service(1);
  CLIENT* const clnt = service.client();
  ASSERT_NE(clnt, nullptr);
  for (int i = 1; i <= 20; ++i) {
    ASSERT_EQ(clnt_call(clnt, 4, reinterpret_cast<xdrproc_t>(long_argument), reinterpret_cast<char*>(&i), nullptr,
                        nullptr, kAtOnce),
              RPC_SUCCESS)
        << i;
  }
  clnt_destroy(clnt);
  const std::lock_guard lock(mu);
  EXPECT_EQ(executed.size(), 20u);
}

TEST(TirpcHandles, TimeoutsAreThoseOfTheCallOrOfTheHandle) {
  Service service(2);
  CLIENT* const clnt = service.client();
  ASSERT_NE(clnt, nullptr);
  int result = 0;
  EXPECT_EQ(call(clnt, 3, 7, &result, {0, 20000}), RPC_TIMEDOUT);
  EXPECT_EQ(call(clnt, 1, 8, &result), RPC_SUCCESS);
  EXPECT_EQ(result, 16);
  timeval limit{0, 30000};
  EXPECT_TRUE(clnt_control(clnt, CLSET_TIMEOUT, reinterpret_cast<char*>(&limit)));
  EXPECT_EQ(call(clnt, 3, 9, &result), RPC_TIMEDOUT);
  limit = {};
  EXPECT_TRUE(clnt_control(clnt, CLGET_TIMEOUT, reinterpret_cast<char*>(&limit)));
  EXPECT_EQ(limit.tv_usec, 30000);
  rpc_err error{};
  clnt_geterr(clnt, &error);
  EXPECT_EQ(error.re_status, RPC_TIMEDOUT);
  clnt_destroy(clnt);
}

TEST(TirpcHandles, ControlWritesNoMoreThanItsCallersHaveRoomFor) {
  Service service(1);
  CLIENT* const clnt = service.client();
  ASSERT_NE(clnt, nullptr);
  struct {
    sockaddr address;
    unsigned char behind[64];
  } room;
  std::memset(&room, 0xA5, sizeof room);
  ASSERT_TRUE(clnt_control(clnt, CLGET_SERVER_ADDR, reinterpret_cast<char*>(&room.address)));
  EXPECT_EQ(room.address.sa_family, AF_INET);
  EXPECT_EQ(ntohs(reinterpret_cast<sockaddr_in*>(&room.address)->sin_port), service.port());
  for (const unsigned char c : room.behind) EXPECT_EQ(c, 0xA5);
  std::uint32_t xid = 4711, word = 0;
  EXPECT_TRUE(clnt_control(clnt, CLSET_XID, reinterpret_cast<char*>(&xid)));
  int result = 0;
  EXPECT_EQ(call(clnt, 1, 3, &result), RPC_SUCCESS);
  EXPECT_TRUE(clnt_control(clnt, CLGET_XID, reinterpret_cast<char*>(&word)));
  EXPECT_EQ(word, 4711u);
  EXPECT_TRUE(clnt_control(clnt, CLGET_PROG, reinterpret_cast<char*>(&word)));
  EXPECT_EQ(word, kProgram);
  int fd = 0;
  EXPECT_FALSE(clnt_control(clnt, CLGET_FD, reinterpret_cast<char*>(&fd)));
  clnt_destroy(clnt);
}

// netid rdma6: the Calls of a client, and who it is to the service.
TEST(TirpcHandles, SpeakIpv6) {
  static sockaddr_in6 caller;
  caller = {};
  std::optional<RunningService> made;
  try {
    made.emplace(
        1,
        [](svc_req* request, SVCXPRT* xprt) {
          const netbuf* const who = svc_getrpccaller(xprt);
          if (who->len == sizeof caller) std::memcpy(&caller, who->buf, sizeof caller);
          dispatch(request, xprt);
        },
        "::1");
  } catch (const std::runtime_error&) {
    GTEST_SKIP() << "no IPv6 here";
  }
  EXPECT_STREQ(made->xprt()->xp_netid, "rdma6");
  const auto* const local = static_cast<const sockaddr_in6*>(made->xprt()->xp_ltaddr.buf);
  EXPECT_EQ(local->sin6_family, AF_INET6);
  EXPECT_EQ(ntohs(local->sin6_port), made->port());
  CLIENT* const clnt = clnt_rpcrdma_create("::1", kProgram, 1, made->port(), nullptr);
  ASSERT_NE(clnt, nullptr);
  EXPECT_STREQ(clnt->cl_netid, "rdma6");
  int result = 0;
  EXPECT_EQ(call(clnt, 1, 21, &result), RPC_SUCCESS);
  EXPECT_EQ(result, 42);
  EXPECT_EQ(caller.sin6_family, AF_INET6);
  EXPECT_EQ(std::memcmp(&caller.sin6_addr, &in6addr_loopback, sizeof in6addr_loopback), 0);
  EXPECT_NE(caller.sin6_port, 0);
  sockaddr room{};
  EXPECT_FALSE(clnt_control(clnt, CLGET_SERVER_ADDR, reinterpret_cast<char*>(&room)));  // it would not fit
  netbuf server{};
  ASSERT_TRUE(clnt_control(clnt, CLGET_SVC_ADDR, reinterpret_cast<char*>(&server)));
  ASSERT_EQ(server.len, sizeof(sockaddr_in6));
  EXPECT_EQ(ntohs(static_cast<const sockaddr_in6*>(server.buf)->sin6_port), made->port());
  clnt_destroy(clnt);
}

// libtirpc asks for the status behind the routine all the same: so it is deleted then. What waits and what is not
// answered goes with it.
TEST(TirpcHandles, ADispatchRoutineMayDestroyItsTransport) {
  static std::atomic<int> taken;
  taken = 0;
  SVCXPRT* const xprt = svc_rpcrdma_create("127.0.0.1", 0, nullptr);
  ASSERT_NE(xprt, nullptr);
  const int fd = xprt->xp_fd;
  ASSERT_TRUE(svc_reg(
      xprt, kProgram, 1,
      [](svc_req* request, SVCXPRT* mine) {
        if (request->rq_proc == 0) return dispatch(request, mine);
        ++taken;
        svc_destroy(mine);
      },
      nullptr));
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([port = xprt->xp_port] {
      rpcrdma_options once{};
      once.size = sizeof once;
      once.once = 1;
      once.timeout_ms = 5000;
      CLIENT* const clnt = clnt_rpcrdma_create("127.0.0.1", kProgram, 1, port, &once);
      if (clnt == nullptr) return;  // it was gone already
      int result = 0;
      EXPECT_NE(call(clnt, 1, 1, &result, {5, 0}), RPC_SUCCESS);
      clnt_destroy(clnt);
    });
  }
  pollfd ready{fd, POLLIN, 0};
  while (taken == 0) {
    if (::poll(&ready, 1, 20) == 1) svc_getreq_common(fd);
  }
  for (auto& c : callers) c.join();
  svc_unreg(kProgram, 1);
  EXPECT_EQ(taken, 1);
}

// Threads that find nothing and are not asked for the status, as libtirpc does where the transport was destroyed by
// another thread in between: what it held goes when they come to another transport, or end.
TEST(TirpcHandles, ADestroyedTransportGoesWithTheLastThreadThatLookedAtIt) {
  const auto look_at = [](SVCXPRT* xprt) {
    rpc_msg message{};
    EXPECT_FALSE(SVC_RECV(xprt, &message));
  };
  SVCXPRT* const other = svc_rpcrdma_create("127.0.0.1", 0, nullptr);
  ASSERT_NE(other, nullptr);
  for (const bool ends : {false, true}) {
    SVCXPRT* const xprt = svc_rpcrdma_create("127.0.0.1", 0, nullptr);
    ASSERT_NE(xprt, nullptr);
    const int fd = xprt->xp_fd;
    const auto open = [fd] { return ::fcntl(fd, F_GETFD) >= 0; };
    std::promise<void> looked, destroyed;
    std::thread looks([&] {
      look_at(xprt);
      looked.set_value();
      destroyed.get_future().wait();
      EXPECT_TRUE(open());
      if (!ends) look_at(other);
    });
    looked.get_future().wait();
    svc_destroy(xprt);
    EXPECT_TRUE(open()) << "a thread may be asked for its status yet";
    destroyed.set_value();
    looks.join();
    EXPECT_TRUE(iwarp::test::eventually([&] { return !open(); }));
  }
  svc_destroy(other);
}

// A thread that has ended had a Call; another, whose id may be the same, takes the next.
TEST(TirpcHandles, ThreadsOfAServiceMayEnd) {
  SVCXPRT* const xprt = svc_rpcrdma_create("127.0.0.1", 0, nullptr);
  ASSERT_NE(xprt, nullptr);
  ASSERT_TRUE(svc_reg(xprt, kProgram, 1, dispatch, nullptr));
  std::atomic<bool> over{false};
  std::thread starter([&] {
    while (!over) {
      std::thread([&] {
        pollfd ready{xprt->xp_fd, POLLIN, 0};
        if (::poll(&ready, 1, 20) == 1) svc_getreq_common(xprt->xp_fd);
      }).join();
    }
  });
  CLIENT* const clnt = clnt_rpcrdma_create("127.0.0.1", kProgram, 1, xprt->xp_port, nullptr);
  ASSERT_NE(clnt, nullptr);
  for (int i = 1; i <= 20; ++i) {
    int result = 0;
    EXPECT_EQ(call(clnt, 2, i, nullptr, kAtOnce), RPC_SUCCESS);  // is not answered
    EXPECT_EQ(call(clnt, 1, i, &result), RPC_SUCCESS);
    EXPECT_EQ(result, i * 2);
  }
  clnt_destroy(clnt);
  over = true;
  starter.join();
  svc_destroy(xprt);
  svc_unreg(kProgram, 1);
}

TEST(TirpcHandles, NobodyListens) {
  std::uint16_t port = 0;
  {
    Service service(1);
    port = service.port();
  }
  EXPECT_EQ(clnt_rpcrdma_create("127.0.0.1", kProgram, 1, port, nullptr), nullptr);
  EXPECT_EQ(rpc_createerr.cf_error.re_errno, ECONNREFUSED);
}

TEST(TirpcOptions, NoMoreIsReadThanTheCallerHas) {
  // The struct of a program that knows the first members only, at the end of what may be read.
  std::vector<std::byte> memory(offsetof(rpcrdma_options, max_message_bytes));
  const std::size_t size = memory.size();
  std::memcpy(memory.data(), &size, sizeof size);
  const std::uint32_t credits = 7, bytes = 2048;
  std::memcpy(memory.data() + offsetof(rpcrdma_options, credits), &credits, 4);
  std::memcpy(memory.data() + offsetof(rpcrdma_options, inline_bytes), &bytes, 4);
  const auto read = read_options(reinterpret_cast<const rpcrdma_options*>(memory.data()));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->client.requester.credits, 7u);
  EXPECT_EQ(read->server.responder.inline_bytes, 2048u);
  EXPECT_EQ(read->timeout, std::chrono::seconds(10));
}

TEST(TirpcOptions, WhatIsOutOfRangeIsRefused) {
  const auto refused = [](auto change) {
    rpcrdma_options o{};
    o.size = sizeof o;
    change(o);
    return !read_options(&o).ok();
  };
  EXPECT_FALSE(refused([](rpcrdma_options&) {}));
  EXPECT_TRUE(refused([](rpcrdma_options& o) { o.size = 0; }));
  EXPECT_TRUE(refused([](rpcrdma_options& o) { o.size = 1u << 20; }));
  EXPECT_TRUE(refused([](rpcrdma_options& o) { o.credits = 201; }));
  EXPECT_TRUE(refused([](rpcrdma_options& o) { o.inline_bytes = 1000; }));
  rpcrdma_bulk bad{};
  bad.prog = 1;
  bad.offset = 2;
  EXPECT_TRUE(refused([&](rpcrdma_options& o) {
    o.bulk = &bad;
    o.bulk_count = 1;
  }));
  EXPECT_TRUE(read_options(nullptr).ok());
}

TEST(TirpcOptions, TheCrcIsLeftOutWhereBothSaySo) {
  rpcrdma_options o{};
  o.size = sizeof o;
  EXPECT_EQ(read_options(&o)->policy.crc, mpa::Policy::Crc::kOn);
  o.no_crc = 1;
  EXPECT_EQ(read_options(&o)->policy.crc, mpa::Policy::Crc::kPreferOff);
}

TEST(TirpcRpcbind, UniversalAddresses) {
  EXPECT_EQ(universal_address("192.0.2.1", 20049), "192.0.2.1.78.81");
  EXPECT_EQ(*port_of("192.0.2.1.78.81"), 20049);
  EXPECT_EQ(*port_of("::1.0.111"), 111);
  for (const char* bad :
       {"", "1", ".1", "a.b", "1.2.3.4.256.1", "1.2.3.4.1.256", "1.2.3.4.-1.1", "1.2..", "1.2.3.4.1.1x"}) {
    EXPECT_FALSE(port_of(bad).ok()) << bad;
  }
  EXPECT_EQ(set("/nonexistent", {1, 1, "rdma", "0.0.0.0.1.1"}).error().code, Errc::kNotConnected);
}

}  // namespace
}  // namespace iwarp::tirpc::test
