#include "tests/device/fake_verbs.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "tests/device/fake_objects.h"

namespace iwarp::device::test {

namespace {

constexpr const char* kNames[] = {"fake0", "fake1"};

}  // namespace

FakeVerbs::FakeVerbs() {
  fake = this;
  attributes.max_qp_wr = 1024;
  attributes.max_cqe = 4096;
  attributes.max_sge = 6;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = 16;
  attributes.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    std::strcpy(devices_[i].name, kNames[i]);
    devices_[i].transport_type = transport;
    contexts_[i].device = &devices_[i];
    contexts_[i].async_fd = new_event();
  }
  Calls::fill_rdmacm(table_);
  Calls::fill_ibverbs(table_);
}

FakeVerbs::~FakeVerbs() {
  for (const auto& device : opened_) device->close();
  opened_.clear();
  // The thread of a connect() that has just returned may still let go of what it had.
  for (int i = 0; i < 2000 && live() > 0; ++i) ::usleep(1000);
  EXPECT_EQ(live(), 0U) << ids_.size() << " ids, " << channels_.size() << " channels, " << cqs_.size() << " CQs, "
                        << pds_.size() << " PDs, " << regions_.size() << " regions";
  EXPECT_EQ(unacknowledged_async_, 0);
  for (const ibv_context& context : contexts_) ::close(context.async_fd);
  fake = nullptr;
}

std::shared_ptr<Device> FakeVerbs::open(boost::asio::io_context& io, const std::string& name) {
  for (ibv_device& device : devices_) device.transport_type = transport;
  auto opened = Device::open(table_, io, name);
  EXPECT_TRUE(opened.device) << opened.error;
  if (opened.device) opened_.push_back(opened.device);
  return opened.device;
}

bool FakeVerbs::fails(const char* name) {
  const std::lock_guard lock(mu_);
  ++counts_[name];
  const auto it = fails_.find(name);
  if (it == fails_.end()) return false;
  errno = it->second;
  fails_.erase(it);
  return true;
}

int FakeVerbs::calls(const std::string& name) const {
  const std::lock_guard lock(mu_);
  const auto it = counts_.find(name);
  return it == counts_.end() ? 0 : it->second;
}

std::size_t FakeVerbs::live() const {
  const std::lock_guard lock(mu_);
  return ids_.size() + channels_.size() + cqs_.size() + completions_.size() + pds_.size() + regions_.size();
}

void FakeVerbs::tell(rdma_cm_id* id, rdma_cm_event_type type, const Told& what) {
  const std::lock_guard lock(mu_);
  auto event = std::make_unique<Channel::Event>();
  event->c.id = event->counts_on = id;
  event->c.event = type;
  event->c.status = what.status;
  event->c.param.conn.responder_resources = what.responder_resources;
  event->c.param.conn.initiator_depth = what.initiator_depth;
  event->octets = what.private_data;
  Calls::push(Calls::of(id->channel), std::move(event));
}

rdma_cm_id* FakeVerbs::request(rdma_cm_id* listener, const Told& what, std::size_t device) {
  const std::lock_guard lock(mu_);
  auto* made = new Id;
  made->c.channel = listener->channel;
  made->c.verbs = &contexts_[device];
  made->c.route.addr.dst_sin = {AF_INET, htons(50000), {htonl(0x0a000005)}, {}};
  made->c.route.addr.src_sin = {AF_INET, htons(20049), {htonl(0x0a000001)}, {}};
  ids_.insert(made);
  auto event = std::make_unique<Channel::Event>();
  event->c.id = &made->c;
  event->c.listen_id = event->counts_on = listener;
  event->c.event = RDMA_CM_EVENT_CONNECT_REQUEST;
  event->c.param.conn.responder_resources = what.responder_resources;
  event->c.param.conn.initiator_depth = what.initiator_depth;
  event->octets = what.private_data;
  Calls::push(Calls::of(listener->channel), std::move(event));
  return &made->c;
}

void FakeVerbs::async(ibv_event_type type, ibv_qp* qp, ibv_cq* cq) {
  const std::lock_guard lock(mu_);
  ibv_async_event event{};
  event.event_type = type;
  if (cq != nullptr) {
    event.element.cq = cq;
  } else {
    event.element.qp = qp;
  }
  async_.push_back(event);
  ring(contexts_[0].async_fd);
}

void FakeVerbs::break_async() {
  const std::lock_guard lock(mu_);
  async_broken_ = true;
  ring(contexts_[0].async_fd);
}

void FakeVerbs::break_completions(rdma_cm_id* id) {
  const std::lock_guard lock(mu_);
  completions_broken_ = true;
  ring(reinterpret_cast<Completions*>(Calls::of(id->qp->send_cq).c.channel)->c.fd);
}

void FakeVerbs::complete(rdma_cm_id* id, ibv_wc wc) {
  const std::lock_guard lock(mu_);
  Cq& cq = Calls::of(id->qp->send_cq);
  cq.done.push_back(wc);
  ((wc.wr_id & 1) != 0 ? receives_completed : sends_completed) += 1;
  if (!std::exchange(cq.armed, false)) return;
  auto* const channel = reinterpret_cast<Completions*>(cq.c.channel);
  channel->rang.push_back(&cq.c);
  ring(channel->c.fd);
}

void FakeVerbs::complete(rdma_cm_id* id, std::uint64_t wr_id, ibv_wc_status status, std::uint32_t bytes) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.byte_len = bytes;
  complete(id, wc);
}

void FakeVerbs::flush(rdma_cm_id* id) {
  while (sends_completed < sends.size()) complete(id, sends[sends_completed].wr.wr_id, IBV_WC_WR_FLUSH_ERR);
  while (receives_completed < receives.size()) complete(id, receives[receives_completed].wr_id, IBV_WC_WR_FLUSH_ERR);
}

std::vector<FakeVerbs::Region> FakeVerbs::regions() const {
  const std::lock_guard lock(mu_);
  std::vector<Region> out;
  for (const auto& [region, about] : regions_) out.push_back(about);
  return out;
}

std::size_t FakeVerbs::locked() const {
  std::size_t out = 0;
  for (const auto& [region, about] : regions_) out += about.bytes;
  return out;
}

void FakeVerbs::limit_locked(std::size_t more) {
  const std::lock_guard lock(mu_);
  lockable_ = locked() + more;
}

void FakeVerbs::hold_connects() {
  const std::lock_guard lock(hold_mu_);
  holding_ = true;
}

void FakeVerbs::release_connects() {
  {
    const std::lock_guard lock(hold_mu_);
    holding_ = false;
  }
  held_.notify_all();
}

}  // namespace iwarp::device::test
