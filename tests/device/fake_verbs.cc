#include "tests/device/fake_verbs.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace iwarp::device::test {

namespace {

FakeVerbs* fake = nullptr;

int new_event() {
  return ::eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);
}

void ring(int descriptor) {
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(descriptor, &one, sizeof one), static_cast<ssize_t>(sizeof one));
}

// False: nothing rang; errno is EAGAIN.
bool heard(int descriptor) {
  std::uint64_t one = 0;
  return ::read(descriptor, &one, sizeof one) == static_cast<ssize_t>(sizeof one);
}

constexpr const char* kNames[] = {"fake0", "fake1"};

}  // namespace

struct FakeVerbs::Channel {
  rdma_event_channel c{};
  struct Event {
    rdma_cm_event c{};
    std::vector<std::byte> octets;
    rdma_cm_id* counts_on = nullptr;
  };
  std::deque<std::unique_ptr<Event>> events;
};

struct FakeVerbs::Id {
  rdma_cm_id c{};
  int unacknowledged = 0;
  ibv_qp qp{};
};

struct FakeVerbs::Cq {
  ibv_cq c{};
  std::deque<ibv_wc> done;
  bool armed = false;
};

struct FakeVerbs::Completions {
  ibv_comp_channel c{};
  std::deque<ibv_cq*> rang;
};

struct Calls {
  using Id = FakeVerbs::Id;
  using Channel = FakeVerbs::Channel;
  using Cq = FakeVerbs::Cq;
  using Completions = FakeVerbs::Completions;
  using Lock = std::lock_guard<std::recursive_mutex>;

  static Id& of(rdma_cm_id* id) { return *reinterpret_cast<Id*>(id); }
  static Channel& of(rdma_event_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
  static Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }

  static void push(Channel& to, std::unique_ptr<Channel::Event> event) {
    if (!event->octets.empty()) {
      event->c.param.conn.private_data = event->octets.data();
      event->c.param.conn.private_data_len = static_cast<std::uint8_t>(event->octets.size());
    }
    to.events.push_back(std::move(event));
    ring(to.c.fd);
  }

  static int create_id(rdma_event_channel* channel, rdma_cm_id** id, void*, rdma_port_space) {
    const Lock lock(fake->mu_);
    if (fake->fails("create_id")) return -1;
    auto* made = new Id;
    made->c.channel = channel;
    fake->ids_.insert(made);
    *id = fake->last_id_ = &made->c;
    return 0;
  }
  static int destroy_id(rdma_cm_id* id) {
    const Lock lock(fake->mu_);
    (void)fake->fails("destroy_id");
    EXPECT_EQ(of(id).unacknowledged, 0) << "destroyed while an event is in somebody's hands";
    EXPECT_EQ(id->qp, nullptr) << "destroyed before its queue pair";
    EXPECT_EQ(fake->ids_.erase(&of(id)), 1U) << "destroyed twice";
    if (id == fake->last_id_) fake->last_id_ = nullptr;
    delete &of(id);
    return 0;
  }
  static void destroy_event_channel(rdma_event_channel* channel) {
    const Lock lock(fake->mu_);
    EXPECT_EQ(fake->channels_.erase(&of(channel)), 1U);
    for (const auto& event : of(channel).events) {  // requests that nobody has taken
      if (event->c.event == RDMA_CM_EVENT_CONNECT_REQUEST && fake->ids_.erase(&of(event->c.id)) > 0)
        delete &of(event->c.id);
    }
    for (const Id* id : fake->ids_) EXPECT_NE(id->c.channel, channel) << "destroyed before its ids";
    ::close(channel->fd);
    delete &of(channel);
  }
  static int get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
    const Lock lock(fake->mu_);
    if (!heard(channel->fd)) return -1;
    auto taken = std::move(of(channel).events.front());
    of(channel).events.pop_front();
    ++of(taken->counts_on).unacknowledged;
    *event = &taken.release()->c;
    return 0;
  }
  static int ack_cm_event(rdma_cm_event* event) {
    const Lock lock(fake->mu_);
    const std::unique_ptr<Channel::Event> taken(reinterpret_cast<Channel::Event*>(event));
    --of(taken->counts_on).unacknowledged;
    return 0;
  }
  static int migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
    const Lock lock(fake->mu_);
    if (fake->fails("migrate_id")) return -1;
    EXPECT_EQ(of(id).unacknowledged, 0) << "would wait for ever";
    id->channel = channel;
    return 0;
  }
  static int create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* how) {
    const Lock lock(fake->mu_);
    if (fake->fails("create_qp")) return -1;
    ibv_qp& qp = of(id).qp;
    qp.context = id->verbs;
    qp.pd = pd;
    qp.send_cq = how->send_cq;
    qp.recv_cq = how->recv_cq;
    id->qp = &qp;
    return 0;
  }
  static int connect(rdma_cm_id* id, rdma_conn_param* param) {
    {
      std::unique_lock wait(fake->hold_mu_);
      fake->held_.wait(wait, [] { return !fake->holding_; });
    }
    return decide("connect", id, param);
  }
  static int decide(const char* call, rdma_cm_id*, rdma_conn_param* param) {
    const Lock lock(fake->mu_);
    fake->last_param = *param;
    const auto* const octets = static_cast<const std::byte*>(param->private_data);
    fake->last_private_data.assign(octets, octets + param->private_data_len);
    fake->last_param.private_data = nullptr;
    return fake->fails(call) ? -1 : 0;
  }
  static int post_send(ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
    const Lock lock(fake->mu_);
    int index = 0;
    for (; wr != nullptr; wr = wr->next, ++index) {
      if (index == fake->refuse_sends_from) {
        *bad = wr;
        return ENOMEM;
      }
      FakeVerbs::SendRequest kept{*wr, {wr->sg_list, wr->sg_list + wr->num_sge}};
      kept.wr.next = nullptr;
      kept.wr.sg_list = nullptr;
      fake->sends.push_back(std::move(kept));
    }
    return 0;
  }
  static int post_recv(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    const Lock lock(fake->mu_);
    if (fake->fails("post_recv")) {
      *bad = wr;
      return errno;
    }
    fake->receives.push_back(*wr);
    fake->receive_bytes.push_back(wr->sg_list->length);
    return 0;
  }
  static int poll_cq(ibv_cq* cq, int most, ibv_wc* to) {
    const Lock lock(fake->mu_);
    if (fake->fails("poll_cq")) return -1;
    int n = 0;
    for (; n < most && !of(cq).done.empty(); ++n) {
      to[n] = of(cq).done.front();
      of(cq).done.pop_front();
    }
    return n;
  }

  static void fill(VerbsTable& t) {
    t.create_event_channel = [] {
      const Lock lock(fake->mu_);
      if (fake->fails("create_event_channel")) return static_cast<rdma_event_channel*>(nullptr);
      auto* made = new Channel;
      made->c.fd = new_event();
      fake->channels_.insert(made);
      return &made->c;
    };
    t.destroy_event_channel = destroy_event_channel;
    t.create_id = create_id;
    t.destroy_id = destroy_id;
    t.bind_addr = [](rdma_cm_id* id, sockaddr* address) {
      const Lock lock(fake->mu_);
      if (fake->fails("bind_addr")) return -1;
      std::memcpy(&id->route.addr.src_storage, address,
                  address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      id->verbs = &fake->contexts_[fake->device_of_address];
      return 0;
    };
    t.listen = [](rdma_cm_id*, int) { return fake->fails("listen") ? -1 : 0; };
    t.resolve_addr = [](rdma_cm_id* id, sockaddr*, sockaddr* to, int) {
      const Lock lock(fake->mu_);
      if (fake->fails("resolve_addr")) return -1;
      std::memcpy(&id->route.addr.dst_storage, to,
                  to->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      id->verbs = &fake->contexts_[fake->device_of_address];
      return 0;
    };
    t.resolve_route = [](rdma_cm_id*, int) { return fake->fails("resolve_route") ? -1 : 0; };
    t.create_qp = create_qp;
    t.destroy_qp = [](rdma_cm_id* id) {
      const Lock lock(fake->mu_);
      (void)fake->fails("destroy_qp");
      EXPECT_NE(id->qp, nullptr);
      id->qp = nullptr;
    };
    t.connect = connect;
    t.accept = [](rdma_cm_id* id, rdma_conn_param* param) { return decide("accept", id, param); };
    t.reject = [](rdma_cm_id*, const void*, std::uint8_t) { return fake->fails("reject") ? -1 : 0; };
    t.disconnect = [](rdma_cm_id*) { return fake->fails("disconnect") ? -1 : 0; };
    t.get_cm_event = get_cm_event;
    t.ack_cm_event = ack_cm_event;
    t.migrate_id = migrate_id;
    t.get_src_port = [](rdma_cm_id*) { return static_cast<__be16>(htons(20049)); };
    t.get_devices = [](int* count) {
      if (fake->fails("get_devices")) return static_cast<ibv_context**>(nullptr);
      *count = 2;
      return new ibv_context* [3] { &fake->contexts_[0], &fake->contexts_[1], nullptr };
    };
    t.free_devices = [](ibv_context** list) { delete[] list; };
    t.get_device_name = [](ibv_device* device) { return static_cast<const char*>(device->name); };
    t.query_device = [](ibv_context*, ibv_device_attr* to) {
      if (fake->fails("query_device")) return -1;
      *to = fake->attributes;
      return 0;
    };
    t.alloc_pd = [](ibv_context*) {
      const Lock lock(fake->mu_);
      if (fake->fails("alloc_pd")) return static_cast<ibv_pd*>(nullptr);
      return *fake->pds_.insert(new ibv_pd{}).first;
    };
    t.dealloc_pd = [](ibv_pd* pd) {
      const Lock lock(fake->mu_);
      EXPECT_EQ(fake->pds_.erase(pd), 1U);
      delete pd;
      return 0;
    };
    t.create_comp_channel = [](ibv_context*) {
      const Lock lock(fake->mu_);
      if (fake->fails("create_comp_channel")) return static_cast<ibv_comp_channel*>(nullptr);
      auto* made = new Completions;
      made->c.fd = new_event();
      fake->completions_.insert(made);
      return &made->c;
    };
    t.destroy_comp_channel = [](ibv_comp_channel* channel) {
      const Lock lock(fake->mu_);
      for (const Cq* cq : fake->cqs_) EXPECT_NE(cq->c.channel, channel) << "destroyed before its queue";
      ::close(channel->fd);
      auto* const own = reinterpret_cast<Completions*>(channel);
      EXPECT_EQ(fake->completions_.erase(own), 1U);
      delete own;
      return 0;
    };
    t.create_cq = [](ibv_context* context, int, void*, ibv_comp_channel* channel, int) {
      const Lock lock(fake->mu_);
      if (fake->fails("create_cq")) return static_cast<ibv_cq*>(nullptr);
      auto* made = new Cq;
      made->c.context = context;
      made->c.channel = channel;
      fake->cqs_.insert(made);
      return &made->c;
    };
    t.destroy_cq = [](ibv_cq* cq) {
      const Lock lock(fake->mu_);
      for (const Id* id : fake->ids_) EXPECT_FALSE(id->c.qp != nullptr && id->c.qp->send_cq == cq) << "in use";
      EXPECT_EQ(cq->comp_events_completed, cq->async_events_completed) << "an event is not acknowledged";
      EXPECT_EQ(fake->cqs_.erase(&of(cq)), 1U);
      delete &of(cq);
      return 0;
    };
    t.get_cq_event = [](ibv_comp_channel* channel, ibv_cq** cq, void**) {
      const Lock lock(fake->mu_);
      if (!heard(channel->fd)) return -1;
      auto& rang = reinterpret_cast<Completions*>(channel)->rang;
      *cq = rang.front();
      rang.pop_front();
      ++(*cq)->comp_events_completed;  // taken; the other counts those acknowledged
      return 0;
    };
    t.ack_cq_events = [](ibv_cq* cq, unsigned n) { cq->async_events_completed += n; };
    t.get_async_event = [](ibv_context* context, ibv_async_event* to) {
      const Lock lock(fake->mu_);
      if (!heard(context->async_fd)) return -1;
      *to = fake->async_.front();
      fake->async_.pop_front();
      ++fake->unacknowledged_async_;
      return 0;
    };
    t.ack_async_event = [](ibv_async_event*) {
      const Lock lock(fake->mu_);
      --fake->unacknowledged_async_;
    };
    t.reg_mr = [](ibv_pd* pd, void* address, std::size_t bytes, int access) {
      const Lock lock(fake->mu_);
      if (fake->fails("reg_mr")) return static_cast<ibv_mr*>(nullptr);
      auto* made = new ibv_mr{};
      made->pd = pd;
      made->lkey = ++fake->next_key_;
      made->rkey = fake->next_key_ + 100000;
      fake->regions_[made] = {address, bytes, access};
      return made;
    };
    t.dereg_mr = [](ibv_mr* region) {
      const Lock lock(fake->mu_);
      if (fake->fails("dereg_mr")) return errno;
      EXPECT_EQ(fake->pds_.count(region->pd), 1U) << "outlives its protection domain";
      EXPECT_EQ(fake->regions_.erase(region), 1U);
      delete region;
      return 0;
    };
    t.wc_status_str = [](ibv_wc_status status) {
      return status == IBV_WC_REM_ACCESS_ERR ? "remote access error" : "another error";
    };
    t.post_send = post_send;
    t.post_recv = post_recv;
    t.poll_cq = poll_cq;
    t.req_notify_cq = [](ibv_cq* cq, int) {
      const Lock lock(fake->mu_);
      if (fake->fails("req_notify_cq")) return errno;
      of(cq).armed = true;
      return 0;
    };
  }
};

FakeVerbs::FakeVerbs() {
  fake = this;
  attributes.max_qp_wr = 1024;
  attributes.max_cqe = 4096;
  attributes.max_sge = 6;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = 16;
  attributes.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    std::strcpy(devices_[i].name, kNames[i]);
    contexts_[i].device = &devices_[i];
    contexts_[i].async_fd = new_event();
  }
  Calls::fill(table_);
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
