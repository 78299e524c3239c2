// A credential that sums up the head of its Calls and what they carry, by the moves that RPCSEC_GSS makes on the
// stream: back to the beginning, and over the place of a length that comes last. The service checks it with what it
// got.
#include <gtest/gtest.h>
#include <rpc/rpc.h>
#include <rpc/svc_mt.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "iwarp/tirpc/xdr_octets.h"
#include "tests/tirpc/service.h"

namespace iwarp::tirpc::test {
namespace {

constexpr enum_t kFlavor = 390199;
constexpr timeval kPatience{30, 0};

std::uint32_t sum_of(const void* octets, std::size_t n) {
  std::uint32_t sum = 2166136261u;
  for (std::size_t i = 0; i < n; ++i) sum = (sum ^ static_cast<const unsigned char*>(octets)[i]) * 16777619u;
  return sum;
}

bool_t put_sum(XDR* xdrs, std::uint32_t sum) {
  opaque_auth verifier{kFlavor, reinterpret_cast<char*>(&sum), sizeof sum};
  return xdr_opaque_auth(xdrs, &verifier);
}

// xdr_wrapstring() takes 9000 octets at most.
bool_t xdr_text(XDR* xdrs, char** text) {
  return xdr_string(xdrs, text, 1u << 20);
}

// length | number, data | sum
bool_t wrap(XDR* xdrs, xdrproc_t proc, caddr_t data) {
  const u_int start = XDR_GETPOS(xdrs);
  XDR_SETPOS(xdrs, start + 4);
  u_int number = 7;
  if (!xdr_u_int(xdrs, &number) || !(*proc)(xdrs, data)) return FALSE;
  const u_int end = XDR_GETPOS(xdrs);
  u_int length = end - start - 4;
  XDR_SETPOS(xdrs, start + 4);
  const void* const octets = XDR_INLINE(xdrs, length);
  u_int sum = sum_of(octets, length);
  XDR_SETPOS(xdrs, start);
  if (!xdr_u_int(xdrs, &length)) return FALSE;
  XDR_SETPOS(xdrs, end);
  return xdr_u_int(xdrs, &sum);
}

bool_t unwrap(XDR* xdrs, xdrproc_t proc, caddr_t data) {
  char* octets = nullptr;
  u_int length = 0, sum = 0, number = 0;
  if (!xdr_bytes(xdrs, &octets, &length, 1u << 20) || !xdr_u_int(xdrs, &sum)) return FALSE;
  const std::vector<char> kept(octets, octets + length);
  std::free(octets);
  if (sum != sum_of(kept.data(), kept.size())) return FALSE;
  XDR inner;
  xdrmem_create(&inner, const_cast<char*>(kept.data()), length, XDR_DECODE);
  return xdr_u_int(&inner, &number) && number == 7 && (*proc)(&inner, data);
}

// --- of the client

std::uint32_t last_xid = 0;  // that AUTH_MARSHALL saw

struct SummingAuth {
  SummingAuth() {
    auth.ah_ops = &ops;
    auth.ah_cred = {kFlavor, name, 8};
  }
  char name[8] = {'c', 'l', 'i', 'e', 'n', 't', '0', '1'};
  AUTH auth{};

  static int marshal(AUTH* auth, XDR* xdrs) {
    if (!xdr_opaque_auth(xdrs, &auth->ah_cred)) return FALSE;
    const u_int length = XDR_GETPOS(xdrs);
    XDR_SETPOS(xdrs, 0);
    const void* const head = XDR_INLINE(xdrs, length);
    std::uint32_t word = 0;
    std::memcpy(&word, head, 4);
    last_xid = ntohl(word);
    return put_sum(xdrs, sum_of(head, length));
  }
  static inline AUTH::auth_ops ops{
      [](AUTH*) {},
      marshal,
      [](AUTH*, opaque_auth* verifier) { return verifier->oa_flavor == kFlavor ? TRUE : FALSE; },
      [](AUTH*, void*) { return FALSE; },
      [](AUTH*) {},
      [](AUTH*, XDR* xdrs, xdrproc_t proc, caddr_t data) { return wrap(xdrs, proc, data); },
      [](AUTH*, XDR* xdrs, xdrproc_t proc, caddr_t data) { return unwrap(xdrs, proc, data); },
  };
};

// --- of the service

std::uint32_t served_xid = 0;

SVCAUTH::svc_auth_ops service_ops{
    [](SVCAUTH*, XDR* xdrs, xdrproc_t proc, caddr_t data) { return wrap(xdrs, proc, data); },
    [](SVCAUTH*, XDR* xdrs, xdrproc_t proc, caddr_t data) { return unwrap(xdrs, proc, data); },
    [](SVCAUTH*) { return TRUE; },
};

enum auth_stat authenticate(svc_req* request, rpc_msg* message) {
  std::array<char, 8 * 4 + 8> head{};
  XDR xdrs;
  xdrmem_create(&xdrs, head.data(), head.size(), XDR_ENCODE);
  u_int words[] = {message->rm_xid,
                   CALL,
                   2,
                   static_cast<u_int>(message->rm_call.cb_prog),
                   static_cast<u_int>(message->rm_call.cb_vers),
                   static_cast<u_int>(message->rm_call.cb_proc)};
  for (u_int& word : words) xdr_u_int(&xdrs, &word);
  if (!xdr_opaque_auth(&xdrs, &message->rm_call.cb_cred)) return AUTH_BADCRED;
  std::uint32_t sum = 0;
  if (message->rm_call.cb_verf.oa_length != sizeof sum) return AUTH_BADVERF;
  std::memcpy(&sum, message->rm_call.cb_verf.oa_base, sizeof sum);
  if (sum != sum_of(head.data(), head.size())) return AUTH_BADVERF;
  served_xid = message->rm_xid;
  SVC_XP_AUTH(request->rq_xprt).svc_ah_ops = &service_ops;
  request->rq_xprt->xp_verf.oa_flavor = kFlavor;
  return AUTH_OK;
}

// Says a text twice.
void dispatch(svc_req* request, SVCXPRT* xprt) {
  if (request->rq_proc == 0) {
    svc_sendreply(xprt, nothing, nullptr);
    return;
  }
  char* text = nullptr;
  if (!svc_getargs(xprt, reinterpret_cast<xdrproc_t>(xdr_text), &text)) return svcerr_decode(xprt);
  std::string twice = std::string(text) + text;
  char* out = twice.data();
  svc_sendreply(xprt, reinterpret_cast<xdrproc_t>(xdr_text), &out);
  svc_freeargs(xprt, reinterpret_cast<xdrproc_t>(xdr_text), &text);
}

TEST(TirpcCredentials, SumUpTheHeadThatGoesOut) {
  ASSERT_GE(svc_auth_reg(kFlavor, authenticate), 0);
  RunningService service(1, dispatch);
  CLIENT* const clnt = service.client();
  ASSERT_NE(clnt, nullptr);
  SummingAuth summing;
  auth_destroy(clnt->cl_auth);
  clnt->cl_auth = &summing.auth;
  for (const std::size_t octets : {1u, 5u, 1000u, 100000u}) {
    std::string text(octets, 'x');
    char* in = text.data();
    char* out = nullptr;
    const clnt_stat stat = clnt_call(clnt, 1, reinterpret_cast<xdrproc_t>(xdr_text), reinterpret_cast<char*>(&in),
                                     reinterpret_cast<xdrproc_t>(xdr_text), reinterpret_cast<char*>(&out), kPatience);
    ASSERT_EQ(stat, RPC_SUCCESS) << octets << ' ' << clnt_sperror(clnt, "");
    EXPECT_EQ(out, text + text);
    std::free(out);
    EXPECT_NE(last_xid, 0u);
    EXPECT_EQ(served_xid, last_xid);
  }
  // The service does look.
  summing.name[0] = 'C';
  SummingAuth::ops.ah_marshal = [](AUTH* auth, XDR* xdrs) -> int {
    return xdr_opaque_auth(xdrs, &auth->ah_cred) && put_sum(xdrs, 0);
  };
  EXPECT_EQ(clnt_call(clnt, 0, nothing, nullptr, nothing, nullptr, kPatience), RPC_AUTHERROR);
  rpc_err error{};
  clnt_geterr(clnt, &error);
  EXPECT_EQ(error.re_why, AUTH_BADVERF);
  SummingAuth::ops.ah_marshal = SummingAuth::marshal;
  clnt_destroy(clnt);
}

// A fresh credential may take Calls of its own, with the same handle. One that does not help leaves the first error.
TEST(TirpcCredentials, MayCallToBeRefreshed) {
  ASSERT_GE(svc_auth_reg(kFlavor, authenticate), 0);
  RunningService service(1, dispatch);
  CLIENT* const clnt = service.client();
  ASSERT_NE(clnt, nullptr);
  static CLIENT* mine;
  static AUTH* none;
  static AUTH* refused;
  static bool helps;
  static int refreshed;
  mine = clnt;
  none = clnt->cl_auth;
  helps = true;
  refreshed = 0;
  SummingAuth bad;
  refused = &bad.auth;
  AUTH::auth_ops ops = SummingAuth::ops;
  ops.ah_marshal = [](AUTH* auth, XDR* xdrs) -> int {
    return xdr_opaque_auth(xdrs, &auth->ah_cred) && put_sum(xdrs, 0);
  };
  ops.ah_refresh = [](AUTH*, void*) -> int {
    ++refreshed;
    mine->cl_auth = none;
    const clnt_stat stat = clnt_call(mine, helps ? 0 : 1, nothing, nullptr, nothing, nullptr, kPatience);
    if (stat == RPC_SUCCESS) return TRUE;
    mine->cl_auth = refused;
    return FALSE;
  };
  bad.auth.ah_ops = &ops;
  clnt->cl_auth = refused;
  const auto null = [&] { return clnt_call(clnt, 0, nothing, nullptr, nothing, nullptr, kPatience); };
  EXPECT_EQ(null(), RPC_SUCCESS);
  EXPECT_EQ(refreshed, 1);
  helps = false;  // procedure 1 wants arguments
  clnt->cl_auth = refused;
  EXPECT_EQ(null(), RPC_AUTHERROR);
  rpc_err error{};
  clnt_geterr(clnt, &error);
  EXPECT_EQ(error.re_status, RPC_AUTHERROR);
  EXPECT_EQ(refreshed, 2);
  clnt->cl_auth = none;
  clnt_destroy(clnt);
}

// Threads on one handle: a credential is used and refreshed by one of them at a time.
TEST(TirpcCredentials, AreRefreshedByOneThreadAtATime) {
  ASSERT_GE(svc_auth_reg(kFlavor, authenticate), 0);
  RunningService service(1, dispatch);
  CLIENT* const clnt = service.client();
  ASSERT_NE(clnt, nullptr);
  static CLIENT* mine;
  static AUTH* none;
  static std::atomic<int> refreshing, disturbed, refreshed;
  static std::atomic<std::thread::id> by;
  mine = clnt;
  none = clnt->cl_auth;
  refreshing = disturbed = refreshed = 0;
  SummingAuth bad;
  AUTH::auth_ops ops = SummingAuth::ops;
  ops.ah_marshal = [](AUTH* auth, XDR* xdrs) -> int {
    if (refreshing > 0 && by.load() != std::this_thread::get_id()) ++disturbed;
    return xdr_opaque_auth(xdrs, &auth->ah_cred) && put_sum(xdrs, 0);
  };
  ops.ah_refresh = [](AUTH* auth, void*) -> int {
    if (refreshing++ > 0) ++disturbed;
    by = std::this_thread::get_id();
    mine->cl_auth = none;
    const bool helps = clnt_call(mine, 0, nothing, nullptr, nothing, nullptr, kPatience) == RPC_SUCCESS;
    mine->cl_auth = auth;
    --refreshing;
    ++refreshed;
    return helps ? TRUE : FALSE;
  };
  bad.auth.ah_ops = &ops;
  clnt->cl_auth = &bad.auth;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(clnt_call(clnt, 0, nothing, nullptr, nothing, nullptr, kPatience), RPC_AUTHERROR);
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(disturbed, 0);
  EXPECT_EQ(refreshed, 4 * 20 * 2) << "each Call is tried twice more";
  clnt->cl_auth = none;
  clnt_destroy(clnt);
}

}  // namespace
}  // namespace iwarp::tirpc::test
