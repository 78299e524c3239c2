#include "iwarp/device/listener.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "iwarp/device/failure.h"

namespace iwarp::device {

using boost::asio::posix::stream_descriptor;

Request::Request(std::shared_ptr<Device> device, CmId id, const CmEvent& event)
    : device_(std::move(device)),
      id_(std::move(id)),
      local_(to_endpoint(id_.get()->route.addr.src_addr)),
      remote_(to_endpoint(id_.get()->route.addr.dst_addr)),
      private_data_(event.octets().begin(), event.octets().end()),
      peer_ird_(event.peer_ird),
      peer_ord_(event.peer_ord) {}

void Request::reject() {
  if (!id_) return;
  (void)device_->verbs().reject(id_.get(), nullptr, 0);
  id_.reset();
}

Result<std::unique_ptr<Listener>> Listener::listen(boost::asio::io_context& io, std::shared_ptr<Device> device,
                                                   const tcp::endpoint& at, Handlers handlers) {
  std::unique_ptr<Listener> out(new Listener(io, std::move(device), std::move(handlers)));
  if (auto ok = out->open(at); !ok) return ok.error();
  return out;
}

Listener::Listener(boost::asio::io_context& io, std::shared_ptr<Device> device, Handlers handlers)
    : io_(io), device_(std::move(device)), handlers_(std::move(handlers)), events_(io) {}

Listener::~Listener() {
  boost::system::error_code ec;
  events_.close(ec);
}

Result<void> Listener::open(const tcp::endpoint& at) {
  if (device_->gone()) return make_error(Errc::kSystem, "the RDMA device is gone");
  auto id = CmId::make(device_->verbs());
  if (!id) return id.error();
  id_ = std::move(*id);
  const VerbsTable& verbs = device_->verbs();
  SocketAddress address = to_socket_address(at);
  if (verbs.bind_addr(id_.get(), &address.any) != 0) return failure_of(errno, "the device cannot listen there");
  if (id_.get()->verbs != nullptr && id_.get()->verbs != device_->context())
    return make_error(Errc::kInvalidArgument, "it is an address of another RDMA device");
  if (verbs.listen(id_.get(), kBacklog) != 0) return failure_of(errno, "the device cannot listen there");
  const auto port = static_cast<std::uint16_t>(ntohs(verbs.get_src_port(id_.get())));
  local_ = {at.address(), at.port() != 0 ? at.port() : port};
  boost::system::error_code ec;
  const int own = ::dup(id_.descriptor());
  if (own < 0) return failure_of(errno, "no descriptor is to be had");
  events_.assign(own, ec);
  if (ec) {
    ::close(own);
    return failure_of(ec.value(), "the device's events cannot be waited for");
  }
  // Heard in the thread of the device, which need not be this one; nor may it find the listener in the midst of a call.
  device_watch_ =
      device_->watch(nullptr, nullptr, [this, &io = io_, alive = std::weak_ptr<bool>(alive_)](const Error& why) {
        boost::asio::post(io, [this, alive, why] {
          if (!alive.expired()) lose(why);
        });
      });
  // Lost since it was looked at, and told to those before.
  if (device_->gone()) return make_error(Errc::kSystem, "the RDMA device is gone");
  wait_for_events();
  return {};
}

void Listener::wait_for_events() {
  events_.async_wait(stream_descriptor::wait_read,
                     [this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code ec) {
                       if (alive.expired() || ec || !id_) return;
                       take_events();
                       if (!alive.expired() && id_) wait_for_events();
                     });
}

void Listener::take_events() {
  const std::weak_ptr<bool> alive = alive_;
  while (!alive.expired() && id_) {
    const auto event = id_.next_event();
    if (!event) return;
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      on_request(*event);
    } else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL && event->id == id_.get()) {
      const Error why = make_error(Errc::kSystem, "the RDMA device was removed");
      device_->lost(why);
      lose(why);
    }  // others are of peers that have left already
  }
}

void Listener::on_request(const CmEvent& event) {
  if (event.id == nullptr) return;
  const bool of_device = event.id->verbs == device_->context();
  auto id = CmId::take(device_->verbs(), event.id);  // rejects it where it fails
  if (!id) return;
  auto request = std::make_unique<Request>(device_, std::move(*id), event);
  if (!of_device || !handlers_.request) return;
  const auto told = handlers_.request;  // the listener, and the handlers that it has, may go meanwhile
  told(std::move(request));
}

// No id of a device outlives it.
void Listener::lose(const Error& why) {
  if (!id_) return;
  boost::system::error_code ec;
  events_.close(ec);
  id_.reset();
  if (handlers_.lost) std::exchange(handlers_.lost, {})(why);
}

}  // namespace iwarp::device
