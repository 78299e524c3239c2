/* A program of libibverbs that knows nothing of iwarp: built with Debian's headers, linked with Debian's library, run over the drop-in one.
 * What it needs no peer for: devices, regions, completion queues and channels, shared receive queues, queue pairs in all their states,
 * posting to a queue pair that is over, asynchronous events. Exit status 0: all is as it should be. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                                           \
  do {                                                                                        \
    if (!(what)) {                                                                            \
      fprintf(stderr, "%s:%d: not so: %s (errno %s)\n", __FILE__, __LINE__, #what, strerror(errno)); \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static char memory[4096];
static struct ibv_mr *mr;

static int readable(int fd, int ms) {
  struct pollfd one = {.fd = fd, .events = POLLIN};
  return poll(&one, 1, ms) == 1;
}

static void device(void) {
  int n = 0;
  struct ibv_device **list = ibv_get_device_list(&n);
  CHECK(list != NULL && n == 1 && list[0] != NULL && list[1] == NULL);
  CHECK(strcmp(ibv_get_device_name(list[0]), "iwarp0") == 0);
  CHECK(list[0]->node_type == IBV_NODE_RNIC && list[0]->transport_type == IBV_TRANSPORT_IWARP);
  CHECK(ibv_get_device_guid(list[0]) != 0);
  context = ibv_open_device(list[0]);
  CHECK(context != NULL && context->device == list[0]);
  ibv_free_device_list(list);

  struct ibv_device_attr attr;
  CHECK(ibv_query_device(context, &attr) == 0);
  CHECK(attr.phys_port_cnt == 1 && attr.max_sge == 8 && attr.max_sge_rd == 1 && attr.atomic_cap == IBV_ATOMIC_NONE);
  struct ibv_device_attr_ex ex;
  CHECK(ibv_query_device_ex(context, NULL, &ex) == 0);
  CHECK(memcmp(&ex.orig_attr, &attr, sizeof attr) == 0);
  struct ibv_port_attr port;
  CHECK(ibv_query_port(context, 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE && port.active_mtu == IBV_MTU_4096 && port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(ibv_query_port(context, 2, &port) == EINVAL);
  struct _compat_ibv_port_attr *old = calloc(1, sizeof port);
  CHECK((ibv_query_port)(context, 1, old) == 0);
  CHECK(((struct ibv_port_attr *)old)->state == IBV_PORT_ACTIVE);
  free(old);
  union ibv_gid gid;
  CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
  const unsigned char want[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  CHECK(memcmp(gid.raw, want, 16) == 0); /* IWARP_ADDRESS says it */
  CHECK(ibv_query_gid(context, 1, 1, &gid) == -1);
  struct ibv_gid_entry entry;
  CHECK(ibv_query_gid_ex(context, 1, 0, &entry, 0) == 0 && memcmp(entry.gid.raw, want, 16) == 0 && entry.ndev_ifindex != 0);
  CHECK(ibv_query_gid_table(context, &entry, 1, 0) == 1);
  __be16 pkey = 0;
  CHECK(ibv_query_pkey(context, 1, 0, &pkey) == 0 && pkey == 0xffff);
  CHECK(strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success") == 0);
  CHECK(ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4 && mult_to_ibv_rate(4) == IBV_RATE_10_GBPS);
}

static void regions(void) {
  pd = ibv_alloc_pd(context);
  CHECK(pd != NULL);
  mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  CHECK(mr != NULL && mr->addr == memory && mr->length == sizeof memory && mr->lkey == mr->rkey && mr->pd == pd);
  CHECK(ibv_reg_mr(pd, memory, 8, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
  CHECK(ibv_reg_mr(pd, memory, 8, IBV_ACCESS_ON_DEMAND) == NULL && errno == EOPNOTSUPP);
  CHECK(ibv_reg_mr(pd, memory, 0, 0) == NULL && errno == EINVAL);
  struct ibv_mr *other = ibv_reg_mr_iova(pd, memory, 16, 0x1000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  CHECK(other != NULL && other->lkey != mr->lkey);
  const uint32_t before = other->lkey;
  CHECK(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == 0);
  CHECK(other->lkey != before && other->length == 16);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  CHECK(ibv_dereg_mr(other) == 0);
  CHECK(ibv_reg_dmabuf_mr(pd, 0, 1, 0, 0, 0) == NULL && errno == EOPNOTSUPP);
  CHECK(ibv_alloc_mw(pd, IBV_MW_TYPE_1) == NULL && errno == EOPNOTSUPP);
}

static struct ibv_qp *make(struct ibv_cq *cq, struct ibv_srq *srq) {
  struct ibv_qp_init_attr attr = {.qp_context = memory,
                                  .send_cq = cq,
                                  .recv_cq = cq,
                                  .srq = srq,
                                  .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
                                          .max_inline_data = 32}};
  struct ibv_qp *qp = ibv_create_qp(pd, &attr);
  CHECK(qp != NULL && attr.cap.max_send_wr >= 4 && attr.cap.max_inline_data >= 32 && qp->qp_context == memory);
  CHECK(qp->state == IBV_QPS_RESET && qp->qp_type == IBV_QPT_RC && qp->srq == srq);
  return qp;
}

static enum ibv_qp_state state(struct ibv_qp *qp) {
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  CHECK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(init.send_cq == qp->send_cq && init.qp_type == IBV_QPT_RC);
  return attr.qp_state;
}

static int move(struct ibv_qp *qp, enum ibv_qp_state to) {
  struct ibv_qp_attr attr = {.qp_state = to};
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* Receives that wait complete flushed when the queue pair is brought to an end, and wake who sleeps for them. */
static void queues(int nonblocking, int extended) {
  struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
  CHECK(channel != NULL && channel->fd >= 0);
  CHECK((fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0);
  if (nonblocking) CHECK(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
  struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16, .cq_context = &pd, .channel = channel, .wc_flags = IBV_WC_STANDARD_FLAGS};
  struct ibv_cq_ex *cq_ex = extended ? ibv_create_cq_ex(context, &cq_attr) : NULL;
  struct ibv_cq *cq = extended ? ibv_cq_ex_to_cq(cq_ex) : ibv_create_cq(context, 16, &pd, channel, 0);
  CHECK(cq != NULL && cq->cqe >= 16 && cq->channel == channel);
  CHECK(ibv_create_cq(context, 0, NULL, NULL, 0) == NULL && errno == EINVAL);
  CHECK(ibv_create_cq(context, 16, NULL, NULL, 7) == NULL && errno == EINVAL);
  CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
  CHECK(ibv_resize_cq(cq, 32) == 0 && cq->cqe >= 32);
  CHECK(ibv_req_notify_cq(cq, 0) == 0);
  struct ibv_cq *got = NULL;
  void *got_context = NULL;
  if (nonblocking) CHECK(ibv_get_cq_event(channel, &got, &got_context) == -1 && errno == EAGAIN);

  struct ibv_qp *qp = make(cq, NULL);
  CHECK(ibv_destroy_cq(cq) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
  CHECK(qp->state == IBV_QPS_RESET && state(qp) == IBV_QPS_INIT); /* so RNICs have it */
  CHECK(move(qp, IBV_QPS_INIT) == 0 && state(qp) == IBV_QPS_INIT);
  CHECK(move(qp, IBV_QPS_RTR) == 0 && state(qp) == IBV_QPS_RTR);
  CHECK(move(qp, IBV_QPS_RTS) == 0 && state(qp) == IBV_QPS_RTS);
  struct ibv_qp_attr connect = {.qp_state = IBV_QPS_RTR, .dest_qp_num = 5};
  CHECK(ibv_modify_qp(qp, &connect, IBV_QP_STATE | IBV_QP_DEST_QPN) == EOPNOTSUPP);

  struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 64, .lkey = mr->lkey};
  struct ibv_recv_wr third = {.wr_id = 3, .sg_list = &sge, .num_sge = 9};
  struct ibv_recv_wr second = {.wr_id = 2, .next = &third, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr first = {.wr_id = 1, .next = &second, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr *bad = NULL;
  CHECK(ibv_post_recv(qp, &first, &bad) == EINVAL && bad == &third);
  struct ibv_recv_wr more[3] = {{.wr_id = 3, .next = &more[1]}, {.wr_id = 4, .next = &more[2]}, {.wr_id = 5}};
  CHECK(ibv_post_recv(qp, more, &bad) == ENOMEM && bad == &more[2]);
  struct ibv_send_wr *bad_send = NULL;
  struct ibv_send_wr refused = {.opcode = IBV_WR_SEND_WITH_IMM};
  CHECK(ibv_post_send(qp, &refused, &bad_send) == EOPNOTSUPP && bad_send == &refused);
  struct ibv_send_wr inlined = {.wr_id = 9, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE, .sg_list = &sge, .num_sge = 1};
  sge.length = sizeof memory;
  CHECK(ibv_post_send(qp, &inlined, &bad_send) == EINVAL); /* more than any that was asked for */
  sge.length = 32;
  CHECK(ibv_post_send(qp, &inlined, &bad_send) == 0);

  CHECK(!readable(channel->fd, 0));
  CHECK(move(qp, IBV_QPS_ERR) == 0 && state(qp) == IBV_QPS_ERR && qp->state == IBV_QPS_ERR);
  CHECK(readable(channel->fd, 1000));
  CHECK(ibv_get_cq_event(channel, &got, &got_context) == 0 && got == cq && got_context == &pd);
  CHECK(!readable(channel->fd, 0)); /* one event for each time it was armed */
  ibv_ack_cq_events(cq, 1);

  unsigned seen = 0;
  if (extended) {
    struct ibv_poll_cq_attr how = {0};
    CHECK(ibv_start_poll(cq_ex, &how) == 0);
    int more_there = 0;
    do {
      CHECK(cq_ex->status == IBV_WC_WR_FLUSH_ERR && ibv_wc_read_qp_num(cq_ex) == qp->qp_num);
      CHECK((ibv_wc_read_opcode(cq_ex) == IBV_WC_RECV) == (cq_ex->wr_id != 9));
      seen |= 1u << cq_ex->wr_id;
      more_there = ibv_next_poll(cq_ex);
    } while (more_there == 0);
    CHECK(more_there == ENOENT);
    ibv_end_poll(cq_ex);
    CHECK(ibv_start_poll(cq_ex, &how) == ENOENT);
  } else {
    struct ibv_wc wc[8];
    const int n = ibv_poll_cq(cq, 8, wc);
    CHECK(n == 5);
    for (int i = 0; i < n; i++) {
      CHECK(wc[i].status == IBV_WC_WR_FLUSH_ERR && wc[i].qp_num == qp->qp_num);
      CHECK((wc[i].opcode == IBV_WC_RECV) == (wc[i].wr_id != 9));
      seen |= 1u << wc[i].wr_id;
    }
    CHECK(ibv_poll_cq(cq, 8, wc) == 0);
  }
  CHECK(seen == (1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 9));

  /* A queue pair that is over takes requests, which complete flushed; what it leaves behind when it goes is not told. */
  sge.length = 8;
  struct ibv_recv_wr late = {.wr_id = 7, .sg_list = &sge, .num_sge = 1};
  CHECK(ibv_post_recv(qp, &late, &bad) == 0);
  struct ibv_wc wc;
  CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 7 && wc.status == IBV_WC_WR_FLUSH_ERR);
  CHECK(ibv_post_recv(qp, &late, &bad) == 0);
  struct ibv_qp *second_qp = make(cq, NULL);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_post_recv(second_qp, &late, &bad) == 0);
  CHECK(move(second_qp, IBV_QPS_ERR) == 0);
  CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.qp_num == second_qp->qp_num);
  CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
  CHECK(ibv_destroy_qp(second_qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

static void *destroy(void *cq) {
  return (void *)(intptr_t)ibv_destroy_cq(cq);
}

/* A queue goes only when its events are acknowledged. */
static void acknowledging(void) {
  struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
  struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, channel, 0), *got = NULL;
  struct ibv_qp *qp = make(cq, NULL);
  struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
  void *got_context = NULL;
  CHECK(ibv_req_notify_cq(cq, 0) == 0 && ibv_post_recv(qp, &wr, &bad) == 0 && move(qp, IBV_QPS_ERR) == 0);
  CHECK(ibv_get_cq_event(channel, &got, &got_context) == 0 && got == cq);
  CHECK(ibv_destroy_qp(qp) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, destroy, cq) == 0);
  usleep(50000);
  void *result = &thread;
  CHECK(pthread_tryjoin_np(thread, &result) == EBUSY);
  ibv_ack_cq_events(cq, 1);
  CHECK(pthread_join(thread, &result) == 0 && result == NULL);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

static void shared_receives(void) {
  struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
  struct ibv_srq *srq = ibv_create_srq(pd, &attr);
  CHECK(srq != NULL);
  struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp *qp = make(cq, srq);
  CHECK(ibv_destroy_srq(srq) == EBUSY);
  struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
  CHECK(ibv_post_recv(qp, &wr, &bad) != 0 && bad == &wr);
  CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
  struct ibv_srq_attr now;
  CHECK(ibv_query_srq(srq, &now) == 0 && now.max_wr == 8 && now.srq_limit == 0);

  /* The limit is reached at once. */
  CHECK(fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK) == 0);
  struct ibv_async_event event;
  CHECK(ibv_get_async_event(context, &event) == -1 && errno == EAGAIN);
  now.srq_limit = 4;
  CHECK(ibv_modify_srq(srq, &now, IBV_SRQ_LIMIT) == 0);
  CHECK(readable(context->async_fd, 1000));
  CHECK(ibv_get_async_event(context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
  ibv_ack_async_event(&event);
  CHECK(!readable(context->async_fd, 0));
  CHECK(ibv_modify_srq(srq, &now, IBV_SRQ_MAX_WR) == EOPNOTSUPP);

  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_srq(srq) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

static void extended_queue_pair(void) {
  struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  struct ibv_qp_init_attr_ex attr = {.send_cq = cq,
                                     .recv_cq = cq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 16},
                                     .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .pd = pd,
                                     .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE};
  struct ibv_qp *qp = ibv_create_qp_ex(context, &attr);
  CHECK(qp != NULL);
  struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
  CHECK(ex != NULL);
  attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  CHECK(ibv_create_qp_ex(context, &attr) == NULL && errno == EOPNOTSUPP);

  ibv_wr_start(ex);
  ex->wr_id = 1;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(ex);
  ibv_wr_set_inline_data(ex, memory, 16);
  ex->wr_id = 2;
  ibv_wr_rdma_write(ex, 5, 6);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
  CHECK(ibv_wr_complete(ex) == 0);
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_abort(ex);
  ibv_wr_start(ex);
  ibv_wr_send_imm(ex, 1);
  CHECK(ibv_wr_complete(ex) == EOPNOTSUPP);
  ibv_wr_start(ex);
  for (int i = 0; i < 3; i++) ibv_wr_send(ex);
  CHECK(ibv_wr_complete(ex) == ENOMEM); /* three more than two of four: none */

  CHECK(move(qp, IBV_QPS_ERR) == 0);
  struct ibv_wc wc[4];
  CHECK(ibv_poll_cq(cq, 4, wc) == 2 && wc[0].wr_id == 1 && wc[1].wr_id == 2);
  CHECK(ibv_destroy_qp(qp) == 0);
  struct ibv_qp_init_attr ud = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD};
  CHECK(ibv_create_qp(pd, &ud) == NULL && errno == EOPNOTSUPP);
  struct ibv_ah_attr ah = {0};
  CHECK(ibv_create_ah(pd, &ah) == NULL && errno == EOPNOTSUPP);
  CHECK(ibv_destroy_cq(cq) == 0);
}

static void *sleeping(void *of) {
  struct ibv_cq *cq;
  struct ibv_async_event event;
  void *cq_context;
  if (of != NULL) {
    ibv_get_cq_event(of, &cq, &cq_context);
  } else {
    ibv_get_async_event(context, &event);
  }
  return NULL;
}

/* A thread that sleeps for an event can be cancelled, by the unwinder of the C library through code of the drop-in one. */
static void cancelling(void) {
  CHECK(fcntl(context->async_fd, F_SETFL, 0) == 0);
  struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
  CHECK(channel != NULL);
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    void *result = NULL;
    CHECK(pthread_create(&thread, NULL, sleeping, i == 0 ? channel : NULL) == 0);
    usleep(20000);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
  }
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

int main(void) {
  device();
  regions();
  for (int i = 0; i < 4; i++) queues(i & 1, i >> 1);
  acknowledging();
  shared_receives();
  extended_queue_pair();
  cancelling();
  CHECK(ibv_dereg_mr(mr) == 0);
  CHECK(ibv_dealloc_pd(pd) == 0);
  CHECK(ibv_close_device(context) == 0);
  return 0;
}
