#include "iwarp/rpc/client.h"

#include "iwarp/rpc/callers.h"
#include "iwarp/rpc/client_core.h"

namespace iwarp::rpc {

Client::Client(cm::Engine& engine, std::shared_ptr<ClientTransport> transport, ClientOptions options)
    : engine_(engine),
      core_(std::make_shared<ClientCore>(engine, std::move(transport), std::move(options))),
      callers_(Callers::of(engine)) {}

Client::~Client() {
  close();
}

void Client::begin(const std::shared_ptr<ClientCore>& core, Octets message, const CallOptions& options, Done done,
                   const std::shared_ptr<cm::Canceller>& cancel) {
  core->begin(std::move(message), options, std::move(done), cancel);
}

void Client::begin(const std::shared_ptr<ClientCore>& core, ConstBytes head, RegisteredOctets arguments,
                   const CallOptions& options, Done done, const std::shared_ptr<cm::Canceller>& cancel) {
  core->begin(WholeMessage(head, std::move(arguments)), options, std::move(done), cancel);
}

Result<Reply> Client::call(const Procedure& what, ConstBytes arguments, const CallOptions& options) {
  return exchange(encode_call(what, options.credential, options.verifier, arguments), options);
}

Result<Reply> Client::call(const Procedure& what, RegisteredOctets arguments, const CallOptions& options) {
  return wait_for(WholeMessage(encode_call(what, options.credential, options.verifier, {}), std::move(arguments)),
                  options);
}

Result<Reply> Client::exchange(Octets message, const CallOptions& options) {
  return wait_for(std::move(message), options);
}

Result<Reply> Client::wait_for(WholeMessage message, const CallOptions& options) {
  struct Outcome {
    Callers::Caller caller{};
    Error error{};
    Reply reply{};
  };
  const auto answer = std::make_shared<Outcome>();
  core_->begin(
      std::move(message), options,
      [answer, engine = &engine_](const Error& error, Reply reply) {
        answer->error = error;
        answer->reply = std::move(reply);
        answer->caller.tell(*engine);
      },
      nullptr);
  callers_->wait(answer->caller);
  if (answer->error) return answer->error;
  return std::move(answer->reply);
}

void Client::serve(std::uint32_t program, std::uint32_t version, Handler handler) {
  core_->serve(program, version, std::move(handler));
}

void Client::close() {
  core_->close();
}

Client::Stats Client::stats() const {
  return core_->stats();
}

}  // namespace iwarp::rpc
