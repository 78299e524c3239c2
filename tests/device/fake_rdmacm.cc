// The calls of librdmacm that a FakeVerbs plays.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/device/fake_objects.h"

namespace iwarp::device::test {

void Calls::push(Channel& to, std::unique_ptr<Channel::Event> event) {
  if (!event->octets.empty()) {
    event->c.param.conn.private_data = event->octets.data();
    event->c.param.conn.private_data_len = static_cast<std::uint8_t>(event->octets.size());
  }
  to.events.push_back(std::move(event));
  ring(to.c.fd);
}

int Calls::create_id(rdma_event_channel* channel, rdma_cm_id** id, void*, rdma_port_space) {
  const Lock lock(fake->mu_);
  if (fake->fails("create_id")) return -1;
  auto* made = new Id;
  made->c.channel = channel;
  fake->ids_.insert(made);
  *id = fake->last_id_ = &made->c;
  return 0;
}

int Calls::destroy_id(rdma_cm_id* id) {
  const Lock lock(fake->mu_);
  (void)fake->fails("destroy_id");
  EXPECT_EQ(of(id).unacknowledged, 0) << "destroyed while an event is in somebody's hands";
  EXPECT_EQ(id->qp, nullptr) << "destroyed before its queue pair";
  EXPECT_EQ(fake->ids_.erase(&of(id)), 1U) << "destroyed twice";
  if (id == fake->last_id_) fake->last_id_ = nullptr;
  delete &of(id);
  return 0;
}

void Calls::destroy_event_channel(rdma_event_channel* channel) {
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

int Calls::get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  const Lock lock(fake->mu_);
  if (!heard(channel->fd)) return -1;
  auto taken = std::move(of(channel).events.front());
  of(channel).events.pop_front();
  ++of(taken->counts_on).unacknowledged;
  *event = &taken.release()->c;
  return 0;
}

int Calls::ack_cm_event(rdma_cm_event* event) {
  const Lock lock(fake->mu_);
  const std::unique_ptr<Channel::Event> taken(reinterpret_cast<Channel::Event*>(event));
  --of(taken->counts_on).unacknowledged;
  return 0;
}

int Calls::migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  const Lock lock(fake->mu_);
  if (fake->fails("migrate_id")) return -1;
  EXPECT_EQ(of(id).unacknowledged, 0) << "would wait for ever";
  id->channel = channel;
  return 0;
}

int Calls::create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* how) {
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

int Calls::connect(rdma_cm_id* id, rdma_conn_param* param) {
  {
    std::unique_lock wait(fake->hold_mu_);
    fake->held_.wait(wait, [] { return !fake->holding_; });
  }
  return decide("connect", id, param);
}

int Calls::decide(const char* call, rdma_cm_id*, rdma_conn_param* param) {
  const Lock lock(fake->mu_);
  fake->last_param = *param;
  const auto* const octets = static_cast<const std::byte*>(param->private_data);
  fake->last_private_data.assign(octets, octets + param->private_data_len);
  fake->last_param.private_data = nullptr;
  return fake->fails(call) ? -1 : 0;
}

void Calls::fill_rdmacm(VerbsTable& t) {
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
  t.listen = [](rdma_cm_id*, int) {
    if (fake->in_listen) std::exchange(fake->in_listen, {})();
    return fake->fails("listen") ? -1 : 0;
  };
  t.resolve_addr = [](rdma_cm_id* id, sockaddr*, sockaddr* to, int) {
    const Lock lock(fake->mu_);
    if (fake->fails("resolve_addr")) return -1;
    std::memcpy(&id->route.addr.dst_storage, to, to->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
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
    if (!fake->there) {
      errno = ENODEV;
      return static_cast<ibv_context**>(nullptr);
    }
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
}

}  // namespace iwarp::device::test
