#include "tools/trace_html.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>

#include "tools/trace_json.h"
#include "tools/trace_output.h"

namespace iwarp::tools {
namespace {

using Json = nlohmann::ordered_json;

class Page final : public TraceOutput {
 public:
  explicit Page(const std::string& name) : name_(name), file_(std::fopen(name.c_str(), "w")) {
    if (file_ == nullptr) cannot_write();
  }

  void seen(const trace::Record& r) override {
    if (r.pdu.name() != "Open") return;
    const auto text = [&r](std::string_view field) {
      const trace::Field* f = r.pdu.find(field);
      return f == nullptr ? std::string() : f->value;
    };
    ends_[r.connection] = {{"connection", r.connection}, {"client", text("client")}, {"server", text("server")}};
  }

  void add(const trace::Record& r) override {
    if (r.layer != "tcp" && shown_.insert(r.connection).second) connections_.push_back(ends_[r.connection]);
    if (records_.size() >= kMaxTracePageRecords) {
      ++left_out_;
      return;
    }
    Json record = to_json(r, {});
    record.erase("time_unix");
    records_.push_back(std::move(record));
  }

  void finish(const trace::Capture::Counts&) override {
    const Json data = {
        {"connections", std::move(connections_)}, {"records", std::move(records_)}, {"left_out", left_out_}};
    constexpr std::string_view kPlace = "@DATA@";
    std::string page = kTracePage;
    page.replace(page.find(kPlace), kPlace.size(), script_safe(data.dump()));
    const bool written = std::fputs(page.c_str(), file_.get()) >= 0;
    if (std::fclose(file_.release()) != 0 || !written) cannot_write();
  }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  [[noreturn]] void cannot_write() const {
    throw std::runtime_error("cannot write " + name_ + ": " + std::strerror(errno));
  }

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  std::map<std::string, Json> ends_;
  std::set<std::string> shown_;  // with more than TCP in them
  Json connections_ = Json::array(), records_ = Json::array();
  std::uint64_t left_out_ = 0;
};

}  // namespace

std::string script_safe(std::string json) {
  constexpr std::string_view kEscaped = "\\u003c";
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += kEscaped.size()) {
    json.replace(at, 1, kEscaped);
  }
  return json;
}

std::unique_ptr<TraceOutput> make_trace_html(const std::string& file) {
  return std::make_unique<Page>(file);
}

}  // namespace iwarp::tools
