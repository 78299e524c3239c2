// The calls of libibverbs that a FakeVerbs plays.
#include <cerrno>
#include <utility>

#include "tests/device/fake_objects.h"

namespace iwarp::device::test {

int Calls::post_send(ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
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

int Calls::post_recv(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const Lock lock(fake->mu_);
  if (fake->fails("post_recv")) {
    *bad = wr;
    return errno;
  }
  fake->receives.push_back(*wr);
  fake->receive_bytes.push_back(wr->sg_list->length);
  return 0;
}

int Calls::poll_cq(ibv_cq* cq, int most, ibv_wc* to) {
  const Lock lock(fake->mu_);
  if (fake->fails("poll_cq")) return -1;
  int n = 0;
  for (; n < most && !of(cq).done.empty(); ++n) {
    to[n] = of(cq).done.front();
    of(cq).done.pop_front();
  }
  return n;
}

void Calls::fill_ibverbs(VerbsTable& t) {
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
    if (fake->completions_broken_) {
      errno = EIO;
      return -1;
    }
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
    if (fake->async_broken_) {
      errno = EIO;
      return -1;
    }
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
    if (fake->lockable_ != SIZE_MAX && fake->locked() + bytes > fake->lockable_) {
      errno = ENOMEM;
      return static_cast<ibv_mr*>(nullptr);
    }
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

}  // namespace iwarp::device::test
