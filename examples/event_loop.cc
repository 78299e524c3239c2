// Completions in an event loop of one's own: a CompletionChannel is one descriptor for any number of queues, here
// beside signals in epoll(7). `event_loop [PORT]` returns what one client sends (`echo HOST PORT TEXT`, say) until that
// client closes, or SIGTERM comes.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/use_future.hpp>
#include <cstdio>
#include <string>

#include "iwarp/iwarp.h"

// Closes itself.
struct Descriptor {
  explicit Descriptor(int which) : fd(which) {
    if (fd < 0) throw std::system_error(errno, std::generic_category());
  }
  ~Descriptor() { close(fd); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

void watch(const Descriptor& epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll.fd, EPOLL_CTL_ADD, fd, &event) != 0) throw std::system_error(errno, std::generic_category());
}

// Answers what has come: receives go to the front of the buffer, answers leave from its second half. False: the client
// has gone.
bool answer(iwarp::Link& link, iwarp::verbs::CompletionQueue& cq, const iwarp::MemoryRegion& region) {
  iwarp::Completion done;
  while (cq.poll({&done, 1}) == 1) {
    if (done.status != iwarp::Errc::kOk) return false;
    const iwarp::MutBytes memory = region.memory();
    std::copy_n(memory.begin(), done.byte_len, memory.begin() + 2048);
    link->post_recv({.sges = region.sge(0, 2048)}).value();  // before the client may send again
    link->post_send({.sges = region.sge(2048, done.byte_len), .signaled = false}).value();
  }
  return true;
}

void run(std::uint16_t port) {
  // Before the engine starts its thread, which inherits it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const Descriptor terminated(signalfd(-1, &signals, SFD_CLOEXEC));

  iwarp::Engine engine;
  const auto listener = iwarp::Listener::listen(engine, {.endpoint = {boost::asio::ip::tcp::v4(), port}}).value();
  std::printf("listening on port %u\n", listener->local().port());
  std::fflush(stdout);
  const auto request = listener->async_accept(boost::asio::use_future).get();

  const iwarp::ProtectionDomain pd(engine.context());
  iwarp::CompletionQueue cq(engine, 8);
  std::array<std::byte, 4096> buffer{};
  const auto region = iwarp::MemoryRegion::register_memory(pd, buffer, {}).value();
  auto link = iwarp::Link::make(pd, {&cq, &cq, {}}).value();
  link->post_recv({.sges = region.sge(0, 2048)}).value();

  iwarp::CompletionChannel channel;
  channel.arm(cq);
  const Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  watch(epoll, channel.fd());
  watch(epoll, terminated.fd);

  const auto connection = link.async_accept(*request, {}, boost::asio::use_future).get();
  for (bool there = true; there;) {
    epoll_event ready{};
    if (epoll_wait(epoll.fd, &ready, 1, -1) != 1) continue;
    if (ready.data.fd == terminated.fd) {
      connection->disconnect();
      break;
    }
    while (const auto event = channel.next_event()) {
      channel.arm(**event);  // before polling: what comes after this is another event
      there = there && answer(link, **event, region);
    }
  }
  const auto how = connection->async_wait_disconnected(boost::asio::use_future).get();
  std::printf("the connection ended: %s\n", how.reason.why);
}

int main(int argc, char** argv) try {
  run(static_cast<std::uint16_t>(argc > 1 ? std::stoi(argv[1]) : 0));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "event_loop: %s\n", e.what());
  return 1;
}
