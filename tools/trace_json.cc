#include "tools/trace_json.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "tools/trace_output.h"

namespace iwarp::tools {
namespace {

using Json = nlohmann::ordered_json;
using trace::Field;

double milliseconds_of(Duration d) {
  return std::chrono::duration<double, std::milli>(std::chrono::duration_cast<std::chrono::microseconds>(d)).count();
}

// "[a [b c]]" as arrays of strings. `text` begins behind the bracket, and is moved behind the closing one.
Json list_to_json(std::string_view& text) {
  Json out = Json::array();
  while (!text.empty() && text.front() != ']') {
    if (text.front() == ' ') {
      text.remove_prefix(1);
    } else if (text.front() == '[') {
      text.remove_prefix(1);
      out.push_back(list_to_json(text));
    } else {
      const std::size_t n = std::min(text.find_first_of(" ]"), text.size());
      out.push_back(std::string(text.substr(0, n)));
      text.remove_prefix(n);
    }
  }
  if (!text.empty()) text.remove_prefix(1);
  return out;
}

Json value_of(const Field& f) {
  switch (f.kind) {
    case Field::Kind::kNumber:
      return f.number;
    case Field::Kind::kMilliseconds:
      return static_cast<double>(f.number) / 1000;
    case Field::Kind::kList: {
      std::string_view text = f.value;
      text.remove_prefix(1);
      return list_to_json(text);
    }
    case Field::Kind::kHex:
    case Field::Kind::kOctets:
    case Field::Kind::kText:
    case Field::Kind::kWord:
      break;
  }
  return f.value;
}

class JsonLines final : public TraceOutput {
 public:
  explicit JsonLines(const JsonFlag& to) : out_(to) { out_.begin_lines("trace"); }
  void start(Duration since_1970) override { start_ = since_1970; }
  void add(const trace::Record& record) override { out_.write_line(to_json(record, start_)); }

 private:
  JsonOutput out_;
  Duration start_{};
};

class SummaryOutput final : public TraceOutput {
 public:
  explicit SummaryOutput(const JsonFlag* to) {
    if (to != nullptr) json_.emplace(*to);
  }
  void seen(const trace::Record& record) override { summary_.see(record); }
  void add(const trace::Record& record) override { summary_.add(record); }
  void finish(const trace::Capture::Counts& counts) override {
    summary_.forgot(counts.forgotten_rpcs, counts.given_up);
    if (json_) {
      json_->write("trace", to_json(summary_));
    } else {
      std::fputs(to_text(summary_).c_str(), stdout);
    }
  }

 private:
  trace::Summary summary_;
  std::optional<JsonOutput> json_;
};

}  // namespace

Json to_json(const trace::Record& r, Duration start) {
  Json out;
  out["time_ms"] = milliseconds_of(r.when.at);
  out["time_unix"] = std::chrono::duration<double>(start + r.when.at).count();
  out["connection"] = r.connection;
  out["direction"] = r.direction == trace::Direction::kTx ? "tx" : "rx";
  out["layer"] = std::string(r.layer);
  out["pdu"] = std::string(r.pdu.name());
  out["error"] = r.error;
  Json& fields = out["fields"] = Json::object();
  for (const Field& f : r.pdu.fields()) fields[std::string(f.name)] = value_of(f);
  return out;
}

Json to_json(const trace::Summary& summary) {
  const auto connection_row = [](const char* key, const Json& name, const trace::Summary::Connection& c) {
    return Json{{key, name},
                {"client", c.client},
                {"server", c.server},
                {"tx_bytes", c.bytes[0]},
                {"rx_bytes", c.bytes[1]},
                {"tx_messages", c.messages[0]},
                {"rx_messages", c.messages[1]},
                {"sends", c.sends},
                {"writes", c.writes},
                {"reads", c.reads},
                {"calls", c.calls},
                {"errors", c.errors},
                {"end", c.end}};
  };
  Json out;
  Json& procedures = out["procedures"] = Json::array();
  for (const auto& [name, p] : summary.procedures()) {
    Json row;
    row["name"] = name;
    row["calls"] = p.calls;
    row["replies"] = p.replies;
    row["errors"] = p.errors;
    row["retransmissions"] = p.retransmissions;
    row["send_bytes"] = p.send_bytes;
    row["write_bytes"] = p.write_bytes;
    row["read_bytes"] = p.read_bytes;
    if (!p.latencies.empty()) {
      row["latency_ms"] = {{"min", milliseconds_of(p.latency(0))},
                           {"median", milliseconds_of(p.latency(0.5))},
                           {"p99", milliseconds_of(p.latency(0.99))},
                           {"max", milliseconds_of(p.latency(1))}};
    }
    procedures.push_back(std::move(row));
  }
  Json& connections = out["connections"] = Json::array();
  for (const auto& [name, c] : summary.connections()) {
    if (c.is_iwarp) connections.push_back(connection_row("connection", name, c));
  }
  if (summary.other_connections() > 0) {
    Json& others = out["other_connections"] = connection_row("count", summary.other_connections(), summary.others());
    for (const char* key : {"client", "server", "end"}) others.erase(key);
  }
  const trace::Summary::Forgotten& f = summary.forgotten();
  out["forgotten"] = {{"rpcs", f.rpcs}, {"connections", f.connections}, {"latencies", f.latencies}};
  return out;
}

std::unique_ptr<TraceOutput> make_trace_json(const JsonFlag& to) {
  return std::make_unique<JsonLines>(to);
}

std::unique_ptr<TraceOutput> make_trace_summary() {
  return std::make_unique<SummaryOutput>(nullptr);
}

std::unique_ptr<TraceOutput> make_trace_json_summary(const JsonFlag& to) {
  return std::make_unique<SummaryOutput>(&to);
}

}  // namespace iwarp::tools
