#include "iwarp/tirpc/svc_transport.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "iwarp/tirpc/process_engine.h"
#include "iwarp/tirpc/xdr_octets.h"

namespace iwarp::tirpc {
namespace {

using Clock = std::chrono::steady_clock;

// A Call that comes within this time behind the last one was worth waiting for: for so long the engine's threads would
// look at their sockets as well.
constexpr std::chrono::microseconds kSoon = cm::Engine::kUsualSpin;

// The Calls that a thread takes before it looks at its other descriptors again, of whatever transport.
class Row {
 public:
  void took() {
    if (std::exchange(over_, false)) begin_ = Clock::now();
  }
  // How long it may go on.
  [[nodiscard]] std::chrono::microseconds left() const {
    const auto past = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin_);
    return std::max(kMost - past, std::chrono::microseconds{0});
  }
  void end() { over_ = true; }

 private:
  static constexpr std::chrono::microseconds kMost{1000};

  bool over_ = true;
  Clock::time_point begin_{};
};

thread_local Row row;

// Where this thread has taken no Call and was not asked for its status since. libtirpc leaves its loop without that
// where the transport was destroyed meanwhile; the thread is out of it all the same when it comes to another.
struct FoundNothing {
  SvcTransport* at = nullptr;
  void leave() {
    if (SvcTransport* const left = std::exchange(at, nullptr); left != nullptr && left->leave_ended()) delete left;
  }
  ~FoundNothing() { leave(); }
};

thread_local FoundNothing found_nothing;

// An address in numbers.
socklen_t put_address(const std::string& text, std::uint16_t port, sockaddr_storage& to) {
  to = {};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&to);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return sizeof *v4;
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&to);
  (void)::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  return sizeof *v6;
}

// Copies an opaque_auth to where libtirpc has room for 400 octets. The parser admits no more.
void put_auth(const rpcrdma::OpaqueAuth& from, opaque_auth& to) {
  to.oa_flavor = static_cast<enum_t>(from.flavor);
  to.oa_length = static_cast<u_int>(from.body.size());
  if (!from.body.empty()) std::memcpy(to.oa_base, from.body.data(), from.body.size());
}

}  // namespace

CallQueue::CallQueue(cm::Engine& engine)
    : engine_(engine), polling_(engine), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

CallQueue::~CallQueue() {
  if (fd_ >= 0) ::close(fd_);
}

void CallQueue::mark() {
  const bool wanted = !waiting_.empty();
  length_.store(waiting_.size());
  if (wanted == readable_ || (wanted && lookers_ > 0)) return;
  std::uint64_t count = 0;
  (void)(wanted ? ::eventfd_write(fd_, 1) : ::eventfd_read(fd_, &count));
  readable_ = wanted;
}

void CallQueue::push(std::shared_ptr<rpc::IncomingCall> call) {
  const std::lock_guard lock(mu_);
  if (closed_) return;  // it goes behind the lock
  waiting_.push_back(std::move(call));
  mark();
}

std::shared_ptr<rpc::IncomingCall> CallQueue::pop() {
  const std::lock_guard lock(mu_);
  if (waiting_.empty()) return nullptr;
  auto call = std::move(waiting_.front());
  waiting_.pop_front();
  mark();  // the others are for whoever comes first
  return call;
}

bool CallQueue::wait(std::chrono::microseconds time) {
  const auto some = [this] { return length_.load() > 0; };
  if (some() || time.count() <= 0) return some();
  Looking looking(*this);
  return looking.found = polling_.until(some, time);
}

void CallQueue::leave_to_engine() {
  engine_.hand_over();
}

// A Call that came at the very end of its time has told nobody.
CallQueue::Looking::~Looking() {
  const std::lock_guard lock(queue_.mu_);
  --queue_.lookers_;
  if (!found) queue_.mark();
}

void CallQueue::close() {
  std::deque<std::shared_ptr<rpc::IncomingCall>> dropped;  // behind the lock
  const std::lock_guard lock(mu_);
  closed_ = true;
  dropped.swap(waiting_);
  mark();
}

SvcTransport::SvcTransport(const Settings& settings)
    : settings_(settings),
      server_(process_engine(), settings.server),
      queue_(std::make_shared<CallQueue>(process_engine())) {
  server_.serve_messages([queue = queue_](std::shared_ptr<rpc::IncomingCall> call) { queue->push(std::move(call)); });
}

SvcTransport::~SvcTransport() {
  (void)end();
}

bool SvcTransport::end() {
  const auto me = std::this_thread::get_id();
  bool comes = false;  // from outside
  {
    const std::lock_guard lock(mu_);
    if (const auto mine = inside_.find(me); mine != inside_.end() && mine->second) inside_.erase(mine);
    if (std::exchange(ended_, true)) return inside_.empty();
    comes = inside_.try_emplace(me, false).second;
  }
  for (const Registration& r : registered_) (void)tirpc::unset(settings_.rpcbind_socket, r);
  server_.stop();
  queue_->close();
  const std::lock_guard lock(mu_);
  if (comes) inside_.erase(me);
  return inside_.empty();
}

Result<void> SvcTransport::open(const char* host, std::uint16_t port) {
  if (queue_->fd() < 0) return make_error(Errc::kResource, "no descriptor to be had");
  boost::system::error_code bad;
  const auto address = host == nullptr ? boost::asio::ip::address(boost::asio::ip::address_v4::any())
                                       : boost::asio::ip::make_address(host, bad);
  if (bad) return make_error(Errc::kInvalidArgument, "not an address");
  listener_ = rpc::on_iwarp(process_engine(), {.endpoint = {address, port}, .policy = settings_.policy});
  if (auto ok = server_.listen(listener_); !ok) return ok;
  if (address.is_v6()) netid_ = "rdma6";
  xprt_.xp_fd = queue_->fd();
  xprt_.xp_port = listener_->local().port();
  xprt_.xp_p1 = this;
  xprt_.xp_p3 = &extension_;
  xprt_.xp_netid = netid_.data();
  const socklen_t length = put_address(address.to_string(), xprt_.xp_port, local_);
  xprt_.xp_ltaddr = {sizeof local_, length, &local_};
  xprt_.xp_rtaddr = {sizeof remote_, 0, &remote_};
  xprt_.xp_verf.oa_base = verifier_;
  return {};
}

SvcTransport::Current SvcTransport::current() {
  const std::lock_guard lock(mu_);
  const auto mine = current_.find(std::this_thread::get_id());
  return mine != current_.end() ? mine->second : Current{};
}

void SvcTransport::leave_current() {
  Current ended;  // behind the lock
  const auto me = std::this_thread::get_id();
  const std::lock_guard lock(mu_);
  if (first_ == std::thread::id{}) first_ = me;
  if (first_ != me) several_ = true;
  if (const auto mine = current_.find(me); mine != current_.end()) {
    ended = std::move(mine->second);
    current_.erase(mine);
  }
}

bool SvcTransport::leave_ended() {
  const std::lock_guard lock(mu_);
  inside_.erase(std::this_thread::get_id());
  return ended_ && inside_.empty();
}

bool SvcTransport::receive(rpc_msg* msg) {
  if (found_nothing.at != this) found_nothing.leave();
  leave_current();
  bool came = false;  // from outside: not in a dispatch routine
  {
    const std::lock_guard lock(mu_);
    came = inside_.try_emplace(std::this_thread::get_id(), false).second;
  }
  const auto call = queue_->pop();
  if (came) found_nothing.at = this;
  if (!call) return false;  // another thread was faster
  found_nothing.at = nullptr;
  row.took();
  if (!several_ && idle_since_) comes_soon_ = Clock::now() - *std::exchange(idle_since_, std::nullopt) <= kSoon;
  const rpcrdma::RpcCall& head = call->head();
  msg->rm_xid = head.xid;
  msg->rm_direction = CALL;
  msg->rm_call.cb_rpcvers = head.rpc_version;
  msg->rm_call.cb_prog = head.program;
  msg->rm_call.cb_vers = head.version;
  msg->rm_call.cb_proc = head.procedure;
  put_auth(head.credential, msg->rm_call.cb_cred);
  put_auth(head.verifier, msg->rm_call.cb_verf);
  const std::lock_guard lock(mu_);
  tell_caller(*call);
  current_[std::this_thread::get_id()] = {call, head.arguments_offset};
  return true;
}

// Precondition: mu_ held.
void SvcTransport::tell_caller(const rpc::IncomingCall& call) {
  if (call.peer() != caller_) {  // few clients call many times
    caller_ = call.peer();
    xprt_.xp_rtaddr.len = put_address(caller_, 0, remote_);
  }
  const std::uint16_t port = htons(call.peer_port());
  if (remote_.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&remote_)->sin_port = port;
  } else {
    reinterpret_cast<sockaddr_in6*>(&remote_)->sin6_port = port;
  }
  // For programs of before IPv6.
  std::memcpy(&xprt_.xp_raddr, &remote_, sizeof xprt_.xp_raddr);
  xprt_.xp_addrlen = static_cast<int>(xprt_.xp_rtaddr.len);
}

xprt_stat SvcTransport::leave(xprt_stat stat) {
  const auto me = std::this_thread::get_id();
  const std::lock_guard lock(mu_);
  if (ended_) {
    inside_[me] = true;
    return XPRT_DIED;
  }
  if (stat == XPRT_IDLE) inside_.erase(me);
  return stat;
}

// Behind each dispatch routine. What it has left without an answer gets one now: the client may wait for its credit,
// and for the memory that the Call was fetched from.
xprt_stat SvcTransport::status() {
  if (found_nothing.at == this) found_nothing.at = nullptr;
  leave_current();
  const auto left = row.left();
  const auto patience = !several_ && comes_soon_ ? kSoon : std::chrono::microseconds{0};
  try {
    if (left.count() > 0 && queue_->wait(std::min(left, patience))) return leave(XPRT_MOREREQS);
  } catch (const std::exception&) {  // of what the engine did meanwhile: the thread leaves all the same
  }
  row.end();
  if (!several_) {
    queue_->leave_to_engine();
    idle_since_ = Clock::now();
  }
  return leave(XPRT_IDLE);
}

bool SvcTransport::get_arguments(xdrproc_t xargs, void* args) {
  const auto mine = current();
  if (!mine.call) return false;
  const ConstBytes octets = mine.call->message().subspan(mine.arguments_at);
  XDR xdrs;
  xdrmem_create(&xdrs, const_cast<char*>(reinterpret_cast<const char*>(octets.data())),
                static_cast<u_int>(octets.size()), XDR_DECODE);
  return SVCAUTH_UNWRAP(&SVC_XP_AUTH(&xprt_), &xdrs, xargs, static_cast<caddr_t>(args)) != FALSE;
}

bool SvcTransport::reply(rpc_msg* msg) {
  const auto mine = current();
  if (!mine.call) return false;
  rpc::Octets octets;
  XdrOctets stream(octets);
  msg->rm_xid = mine.call->head().xid;
  bool made = false;
  const bool results = msg->rm_reply.rp_stat == MSG_ACCEPTED && msg->acpted_rply.ar_stat == SUCCESS;
  if (results) {
    // The head first, then what the credential makes of the results.
    const auto xdr = msg->acpted_rply.ar_results.proc;
    const auto where = msg->acpted_rply.ar_results.where;
    msg->acpted_rply.ar_results = {nullptr, nothing};
    made = xdr_replymsg(stream.xdr(), msg) != FALSE &&
           SVCAUTH_WRAP(&SVC_XP_AUTH(&xprt_), stream.xdr(), xdr, where) != FALSE;
  } else {
    made = xdr_replymsg(stream.xdr(), msg) != FALSE;
  }
  if (!made) return false;
  stream.finish();
  const bool sent = mine.call->answer(std::move(octets)).ok();
  leave_current();
  return sent;
}

std::vector<Registration> SvcTransport::registrations(std::uint32_t program, std::uint32_t version) const {
  const auto local = listener_->local();
  return {{program, version, netid_, universal_address(local.address().to_string(), local.port())}};
}

Result<void> SvcTransport::set(std::uint32_t program, std::uint32_t version) {
  for (const Registration& r : registrations(program, version)) {
    if (auto done = tirpc::set(settings_.rpcbind_socket, r); !done) return done;
    registered_.push_back(r);
  }
  return {};
}

Result<void> SvcTransport::unset(std::uint32_t program, std::uint32_t version) {
  std::erase_if(registered_, [&](const Registration& r) { return r.program == program && r.version == version; });
  for (const Registration& r : registrations(program, version)) {
    if (auto done = tirpc::unset(settings_.rpcbind_socket, r); !done) return done;
  }
  return {};
}

}  // namespace iwarp::tirpc
