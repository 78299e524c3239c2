#include "iwarp/cm/accept_over.h"

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include "iwarp/cm/request_reader.h"

namespace iwarp::cm {
namespace {

using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

// One accept_over(). Its members are touched in its strand only.
class TakeOver : public std::enable_shared_from_this<TakeOver> {
 public:
  TakeOver(Engine& engine, TcpConnection tcp, const AcceptOverOptions& options, AcceptOverHandler handler)
      : engine_(engine),
        operations_(engine.operations()),
        strand_(boost::asio::make_strand(engine.io())),
        tcp_(std::move(tcp)),
        options_(options),
        handler_(std::move(handler)) {}

  void post_begin() {
    boost::asio::post(strand_, [self = shared_from_this()] { self->begin(); });
  }
  void post_cancel() {
    boost::asio::post(strand_, [self = shared_from_this()] {
      if (!self->handler_) return;
      if (const auto reader = self->reader_.lock()) reader->stop();
      self->end(make_error(Errc::kAborted, kCancelledWhy), nullptr);
    });
  }

 private:
  void begin() {
    if (!handler_) return;
    if (operations_->closed()) return end(make_error(Errc::kAborted, "engine destroyed"), nullptr);
    if (auto ok = mpa::validate(options_.policy); !ok) return end(ok.error(), nullptr);
    if (auto ok = validate(options_.socket); !ok) return end(ok.error(), nullptr);
    auto socket = tcp_.socket(strand_);
    if (!socket) return end(socket.error(), nullptr);
    if (auto ok = set_congestion_control(socket->native_handle(), options_.socket.congestion_control); !ok)
      return end(ok.error(), nullptr);
    if (auto ok = prepare(*socket, options_.socket); !ok) return end(ok.error(), nullptr);
    const auto reader = std::make_shared<RequestReader>(engine_, std::move(socket).value(), options_.policy,
                                                        options_.socket.receive_window, nullptr);
    reader_ = reader;
    // req: RFC5044-7.1-4, RFC5044-7.1.3-1
    reader->begin(tcp_.early(), [self = shared_from_this()](const std::shared_ptr<RequestReader>&, const Error& error,
                                                            std::unique_ptr<ConnectRequest> request) {
      self->end(error, std::move(request));
    });
  }

  void end(const Error& error, std::unique_ptr<ConnectRequest> request) {
    tcp_ = {};
    std::exchange(handler_, {})(error, std::move(request));
  }

  Engine& engine_;
  const std::shared_ptr<Operations> operations_;
  Strand strand_;
  TcpConnection tcp_;
  AcceptOverOptions options_;
  AcceptOverHandler handler_;            // empty: called
  std::weak_ptr<RequestReader> reader_;  // which holds this object
};

}  // namespace

void accept_over(Engine& engine, TcpConnection tcp, const AcceptOverOptions& options, AcceptOverHandler handler,
                 const std::shared_ptr<Canceller>& cancel) {
  if (!engine.context()->alive()) return handler(verbs::used_after_fork(), nullptr);
  engine.start();
  const auto take_over = std::make_shared<TakeOver>(engine, std::move(tcp), options, std::move(handler));
  take_over->post_begin();
  if (cancel == nullptr) return;
  cancel->set([weak = std::weak_ptr<TakeOver>(take_over)] {
    if (const auto self = weak.lock()) self->post_cancel();
  });
}

}  // namespace iwarp::cm
