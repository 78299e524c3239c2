#include "iwarp/rpc/server.h"

#include "iwarp/rpc/server_core.h"

namespace iwarp::rpc {

std::uint32_t Call::program() const {
  return call_->head().program;
}

std::uint32_t Call::version() const {
  return call_->head().version;
}

std::uint32_t Call::procedure() const {
  return call_->head().procedure;
}

ConstBytes Call::arguments() const {
  const ConstBytes message = call_->message();
  return message.empty() ? message : message.subspan(call_->head().arguments_offset);
}

rpcrdma::OpaqueAuth Call::credential() const {
  return call_->head().credential;
}

const std::string& Call::peer() const {
  return call_->peer();
}

void Call::done_reading() {
  call_->done_reading();
}

Server::Server(cm::Engine& engine, ServerOptions options)
    : core_(std::make_shared<ServerCore>(engine, std::move(options))) {}

Server::~Server() {
  stop();
}

void Server::serve(std::uint32_t program, std::uint32_t version, Handler handler) {
  core_->serve(program, version, std::move(handler));
}

void Server::serve_messages(MessageHandler handler) {
  core_->serve_messages(std::move(handler));
}

Result<void> Server::listen(std::shared_ptr<ServerTransport> transport) {
  return core_->listen(std::move(transport));
}

void Server::stop() {
  core_->stop();
}

void Server::drop_connections() {
  core_->drop_connections();
}

Server::Stats Server::stats() const {
  return core_->stats();
}

}  // namespace iwarp::rpc
