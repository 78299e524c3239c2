#include "iwarp/trace/summary.h"

#include <algorithm>
#include <cmath>

namespace iwarp::trace {

Duration Summary::Procedure::latency(double part) const {
  std::vector<Duration> all = latencies;
  const auto n = static_cast<double>(all.size());
  const auto rank = static_cast<std::ptrdiff_t>(std::max(std::ceil(part * n), 1.0)) - 1;
  std::nth_element(all.begin(), all.begin() + rank, all.end());
  return all[static_cast<std::size_t>(rank)];
}

Summary::Connection& Summary::connection(const std::string& name) {
  const auto [it, is_new] = index_.try_emplace(name, connections_.size());
  if (is_new) connections_.emplace_back(name, Connection{});
  return connections_[it->second].second;
}

void Summary::add(const Record& r) {
  Connection& c = connection(r.connection);
  if (r.error && r.pdu.name() != "Total") ++c.errors;
  if (r.layer == "tcp") return add_tcp(r, c);
  if (r.layer == "rdmap") {
    if (r.pdu.name().starts_with("Send")) ++c.sends;
    if (r.pdu.name() == "Write") ++c.writes;
    if (r.pdu.name() == "ReadRequest") ++c.reads;
    if (r.pdu.name() == "Terminate") c.end = "Terminate";
    return;
  }
  if (r.is("mpa", "Reply") && r.error) c.end = "rejected";
  if (r.is("rpc", "Call")) ++c.calls;
  if (r.layer == "rpc" || r.layer == "rpcrdma") add_rpc(r);
}

void Summary::open(const Record& r) {
  const auto text = [&r](std::string_view field) {
    const Field* f = r.pdu.find(field);
    return f == nullptr ? std::string() : f->value;
  };
  Connection& c = connection(r.connection);
  c.client = text("client");
  c.server = text("server");
}

void Summary::add_tcp(const Record& r, Connection& c) {
  const std::string_view name = r.pdu.name();
  const bool told = c.end == "Terminate" || c.end == "rejected";
  if (name == "Total") {
    c.bytes[index(r.direction)] = r.pdu.number_of("bytes");
    c.messages[index(r.direction)] = r.pdu.number_of("messages");
  } else if (name == "Reset" && !told) {
    c.end = "reset";
  } else if (name == "NotMpa") {
    c.is_iwarp = false;
  } else if (name == "Fin" && c.end == "still open") {
    c.end = r.direction == Direction::kTx ? "client closed" : "server closed";
  }
}

void Summary::add_rpc(const Record& r) {
  if (r.rpc == nullptr || !r.rpc->known) return;
  const bool call = r.is("rpc", "Call");
  if (!call && !r.is("rpc", "Reply") && !r.is("rpcrdma", "RDMA_ERROR")) return;
  Procedure& p = procedures_[r.rpc->name];
  p.calls += call;
  p.retransmissions += r.retransmission;
  if (call) return;
  ++p.replies;
  p.errors += r.error;
  p.send_bytes += r.rpc->send_bytes;
  p.write_bytes += r.rpc->write_bytes;
  p.read_bytes += r.rpc->read_bytes;
  if (r.latency && p.latencies.size() < kMaxLatencies) p.latencies.push_back(*r.latency);
}

}  // namespace iwarp::trace
