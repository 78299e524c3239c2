#include "iwarp/trace/summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace iwarp::trace {
namespace {

// Of an SCTP association and none of its sessions, which are the connections here.
bool is_of_association(const Record& r) {
  return r.layer == "sctp" && r.connection.find('/') == std::string::npos;
}

}  // namespace

Duration Summary::Procedure::latency(double part) const {
  std::vector<Duration> all = latencies;
  const auto n = static_cast<double>(all.size());
  const auto rank = static_cast<std::ptrdiff_t>(std::max(std::ceil(part * n), 1.0)) - 1;
  std::nth_element(all.begin(), all.begin() + rank, all.end());
  return all[static_cast<std::size_t>(rank)];
}

Summary::Place Summary::place_of(const std::string& name) {
  if (const auto known = index_.find(name); known != index_.end()) return known->second;
  if (connections_.size() >= kMaxConnections) make_room();
  const Place place = connections_.emplace(connections_.end(), name, Connection{});
  index_.emplace(name, place);
  return place;
}

void Summary::make_room() {
  if (over_.empty()) return;
  const Place oldest = over_.front();
  over_.pop_front();
  const Connection& c = oldest->second;
  if (c.is_iwarp) {
    ++other_connections_;
    for (const std::size_t d : {0, 1}) {
      others_.bytes[d] += c.bytes[d];
      others_.messages[d] += c.messages[d];
    }
    others_.sends += c.sends;
    others_.writes += c.writes;
    others_.reads += c.reads;
    others_.calls += c.calls;
    others_.errors += c.errors;
  }
  index_.erase(oldest->first);
  connections_.erase(oldest);
}

void Summary::see(const Record& r) {
  if (is_of_association(r)) return;
  const Place place = place_of(r.connection);
  Connection& c = place->second;
  if (r.is("rdmap", "Terminate")) c.end = "Terminate";
  if (r.is("mpa", "Reply") && r.error) c.end = "rejected";
  if (r.layer != "tcp" && r.layer != "sctp") return;
  see_tcp(r, c);
  const bool is_last = r.pdu.name() == "Total" && r.direction == Direction::kRx;
  if (is_last || !c.is_iwarp) end(place);
}

void Summary::see_tcp(const Record& r, Connection& c) {
  const auto text = [&r](std::string_view field) {
    const Field* f = r.pdu.find(field);
    return f == nullptr ? std::string() : f->value;
  };
  const std::string_view name = r.pdu.name();
  const bool told = c.end == "Terminate" || c.end == "rejected";
  if (name == "Open") {
    c.client = text("client");
    c.server = text("server");
  } else if (name == "Total") {
    c.bytes[index(r.direction)] = r.pdu.number_of("bytes");
    c.messages[index(r.direction)] = r.pdu.number_of("messages");
  } else if ((name == "Reset" || name == "Abort") && !told) {
    c.end = "reset";
  } else if (name == "NotMpa") {
    c.is_iwarp = false;
  } else if ((name == "Reject" || name == "EnhancedReject") && !told) {
    c.end = "rejected";
  } else if ((name == "Fin" || (name == "Terminate" && r.layer == "sctp")) && c.end == "still open") {
    c.end = r.direction == Direction::kTx ? "client closed" : "server closed";
  }
}

void Summary::end(Place place) {
  if (!std::exchange(place->second.over, true)) over_.push_back(place);
}

void Summary::add(const Record& r) {
  if (is_of_association(r)) return;
  Connection& c = place_of(r.connection)->second;
  if (r.error && r.pdu.name() != "Total") ++c.errors;
  if (r.layer == "rdmap") {
    if (r.pdu.name().starts_with("Send")) ++c.sends;
    if (r.pdu.name() == "Write") ++c.writes;
    if (r.pdu.name() == "ReadRequest") ++c.reads;
    return;
  }
  if (r.is("rpc", "Call")) ++c.calls;
  if (r.layer == "rpc" || r.layer == "rpcrdma") add_rpc(r);
}

void Summary::forgot(std::uint64_t rpcs, std::uint64_t connections) {
  forgotten_.rpcs += rpcs;
  forgotten_.connections += connections;
}

Summary::Procedure& Summary::procedure(const std::string& name) {
  const auto known = procedures_.find(name);
  if (known != procedures_.end()) return known->second;
  return procedures_[procedures_.size() < kMaxProcedures ? name : kOtherProcedures];
}

void Summary::add_rpc(const Record& r) {
  if (r.rpc == nullptr || !r.rpc->known) return;
  const bool call = r.is("rpc", "Call");
  // One that could not be read, or was not wholly captured, is an answer too.
  const bool answer = (r.layer == "rpc" && r.direction != r.rpc->caller) || r.is("rpcrdma", "RDMA_ERROR");
  if (!call && !answer) return;
  Procedure& p = procedure(r.rpc->name);
  p.calls += call;
  p.retransmissions += r.retransmission;
  if (call) return;
  ++p.replies;
  p.errors += r.error;
  p.send_bytes += r.rpc->send_bytes;
  p.write_bytes += r.rpc->write_bytes;
  p.read_bytes += r.rpc->read_bytes;
  if (!r.latency) return;
  if (p.latencies.size() >= kMaxLatencies || latencies_ >= kMaxAllLatencies) {
    ++forgotten_.latencies;
    return;
  }
  p.latencies.push_back(*r.latency);
  ++latencies_;
}

}  // namespace iwarp::trace
