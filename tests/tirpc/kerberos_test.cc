// RPCSEC_GSS with Kerberos, from a realm of the test's own.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "iwarp/tirpc/xdr_octets.h"
#include "tests/tirpc/service.h"

// Of rpc/rpcsec_gss.h, which wants headers of Kerberos.
extern "C" {
AUTH* rpc_gss_seccreate(CLIENT*, char* principal, char* mechanism, int service, char* qop, void*, void*);
bool_t rpc_gss_set_svc_name(char* principal, char* mechanism, u_int seconds, u_int prog, u_int vers);
}

namespace iwarp::tirpc::test {
namespace {

constexpr timeval kPatience{30, 0};
char kService[] = "store@localhost";
char kMechanism[] = "kerberos_v5";

bool run(const std::string& script) {
  return std::system(("( set -e; PATH=$PATH:/usr/sbin; " + script + " ) >/dev/null 2>&1").c_str()) == 0;
}

std::uint16_t unused_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address), length);
  (void)::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(fd);
  return ntohs(address.sin_port);
}

// A KDC, the key of the service, and the ticket of a user, for this process.
class Realm {
 public:
  Realm() : directory_(std::filesystem::temp_directory_path() / ("krb5." + std::to_string(::getpid()))) {
    std::filesystem::create_directory(directory_);
    const std::string at = directory_, kdc = "127.0.0.1:" + std::to_string(unused_port());
    std::ofstream(at + "/krb5.conf") << "[libdefaults]\n default_realm = IWARP.TEST\n dns_lookup_kdc = false\n"
                                     << " dns_lookup_realm = false\n dns_canonicalize_hostname = false\n rdns = false\n"
                                     << " qualify_shortname = \"\"\n udp_preference_limit = 1\n"
                                     << "[realms]\n IWARP.TEST = {\n  kdc = " << kdc << "\n }\n";
    std::ofstream(at + "/kdc.conf") << "[realms]\n IWARP.TEST = {\n  kdc_listen = \"\"\n  kdc_tcp_listen = " << kdc
                                    << "\n  database_name = " << at << "/principal\n  key_stash_file = " << at
                                    << "/stash\n  acl_file = " << at << "/acl\n }\n[logging]\n kdc = FILE:" << at
                                    << "/log\n";
    for (const auto& [name, value] : {std::pair<const char*, std::string>{"KRB5_CONFIG", at + "/krb5.conf"},
                                      {"KRB5_KDC_PROFILE", at + "/kdc.conf"},
                                      {"KRB5_KTNAME", "FILE:" + at + "/keytab"},
                                      {"KRB5CCNAME", "FILE:" + at + "/tickets"},
                                      {"KRB5RCACHENAME", "none:"}}) {
      ::setenv(name, value.c_str(), 1);
    }
    const bool made =
        run("cd " + at + "; kdb5_util create -r IWARP.TEST -s -P master; for p in store/localhost user; do " +
            "kadmin.local -q \"addprinc -randkey $p\"; kadmin.local -q \"ktadd -k keytab $p\"; done");
    if (made) start_kdc();
    if (!made || !run("i=0; until kinit -k -t " + at + "/keytab user; do i=$((i+1)); [ $i -lt 100 ]; sleep 0.1; done"))
      throw std::runtime_error("no realm: " + at);
  }
  ~Realm() {
    if (kdc_ > 0) {
      ::kill(kdc_, SIGTERM);
      ::waitpid(kdc_, nullptr, 0);
    }
    std::filesystem::remove_all(directory_);
  }
  Realm(const Realm&) = delete;
  Realm& operator=(const Realm&) = delete;

 private:
  void start_kdc() {
    kdc_ = ::fork();
    if (kdc_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(127);
    ::execl("/usr/sbin/krb5kdc", "krb5kdc", "-n", nullptr);
    ::_exit(127);
  }

  std::filesystem::path directory_;
  pid_t kdc_ = -1;
};

// xdr_wrapstring() has 9000 octets at most.
bool_t xdr_text(XDR* xdrs, char** text) {
  return xdr_string(xdrs, text, 1 << 20);
}

// Says a text twice.
void dispatch(svc_req* request, SVCXPRT* xprt) {
  if (request->rq_proc == 0) {
    svc_sendreply(xprt, nothing, nullptr);
    return;
  }
  if (request->rq_cred.oa_flavor != RPCSEC_GSS) return svcerr_weakauth(xprt);
  char* text = nullptr;
  if (!svc_getargs(xprt, reinterpret_cast<xdrproc_t>(xdr_text), &text)) return svcerr_decode(xprt);
  std::string twice = std::string(text) + text;
  char* out = twice.data();
  svc_sendreply(xprt, reinterpret_cast<xdrproc_t>(xdr_text), &out);
  svc_freeargs(xprt, reinterpret_cast<xdrproc_t>(xdr_text), &text);
}

TEST(TirpcKerberos, WithoutProtectionWithIntegrityAndWithPrivacy) {
  if (!run("[ -x /usr/sbin/krb5kdc ]; command -v kdb5_util; command -v kadmin.local; command -v kinit"))
    GTEST_SKIP() << "needs krb5-kdc, krb5-admin-server and krb5-user";
  const Realm realm;
  ASSERT_TRUE(rpc_gss_set_svc_name(kService, kMechanism, 3600, kProgram, 1));
  RunningService service(1, dispatch);
  for (const int protection : {1, 2, 3}) {
    CLIENT* const clnt = service.client();
    ASSERT_NE(clnt, nullptr);
    AUTH* const none = clnt->cl_auth;
    AUTH* const gss = rpc_gss_seccreate(clnt, kService, kMechanism, protection, nullptr, nullptr, nullptr);
    ASSERT_NE(gss, nullptr) << protection;
    clnt->cl_auth = gss;
    for (const std::size_t octets : {1u, 1000u, 30000u}) {
      std::string text(octets, 'x');
      char* in = text.data();
      char* out = nullptr;
      const clnt_stat stat = clnt_call(clnt, 1, reinterpret_cast<xdrproc_t>(xdr_text), reinterpret_cast<char*>(&in),
                                       reinterpret_cast<xdrproc_t>(xdr_text), reinterpret_cast<char*>(&out), kPatience);
      ASSERT_EQ(stat, RPC_SUCCESS) << protection << ' ' << octets << ' ' << clnt_sperror(clnt, "");
      EXPECT_EQ(out, text + text);
      std::free(out);
    }
    auth_destroy(gss);  // makes room for the next client
    clnt->cl_auth = none;
    clnt_destroy(clnt);
  }
}

}  // namespace
}  // namespace iwarp::tirpc::test
