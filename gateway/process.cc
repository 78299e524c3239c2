#include "iwarp/gateway/process.h"

namespace iwarp::gateway {

ProcessOptions ProcessOptions::of_one(const Options& options) {
  ProcessOptions o;
  o.memory_bytes = options.process_memory_bytes;
  o.least_part_bytes = options.least_part();
  o.drain_timeout = options.drain_timeout;
  return o;
}

Process::Process(boost::asio::io_context& io, const ProcessOptions& options)
    : options_(options),
      memory_(std::make_shared<rpcrdma::MemoryBudget>(options.memory_bytes, options.least_part_bytes)),
      turns_(std::make_shared<TurnQueue>(io)),
      clients_(options.max_connections_per_client) {}

void Process::change(const ProcessOptions& options) {
  options_ = options;
  memory_->change(options.memory_bytes, options.least_part_bytes);
  clients_.set_limit(options.max_connections_per_client);
}

ClientPlaces::Place Process::take_place(const boost::asio::ip::address& client, const char*& why) {
  if (*connections_ >= options_.max_connections) {
    why = "the gateway has as many connections as it may have";
    return nullptr;
  }
  auto of_client = clients_.take(client);
  if (!of_client) {
    why = "this client has as many connections as it may have";
    return nullptr;
  }
  ++*connections_;
  const void* const place = of_client.get();
  return {place, [of_client = std::move(of_client), connections = connections_](const void*) { --*connections; }};
}

Places take_places(Process& process, ClientPlaces& listener, const boost::asio::ip::address& client) {
  Places out;
  auto of_listener = listener.take(client);
  if (!of_listener) {
    out.why = "this client has as many connections as it may have";
    return out;
  }
  auto of_process = process.take_place(client, out.why);
  if (!of_process) return out;
  const void* const place = of_process.get();
  out.of_both = {place, [of_listener = std::move(of_listener), of_process = std::move(of_process)](const void*) {}};
  return out;
}

}  // namespace iwarp::gateway
