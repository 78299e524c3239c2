#include "tools/recorder.h"

#include <pcap/pcap.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "iwarp/trace/capture.h"
#include "iwarp/trace/line_writer.h"
#include "iwarp/trace/packet_maker.h"

namespace iwarp::tools {
namespace {

using trace::Direction;

constexpr int kSnapBytes = 262144;

[[noreturn]] void cannot_write(const std::string& file, const char* why) {
  throw std::runtime_error("cannot write " + file + ": " + why);
}

// The two files, shared by all connections. Thread-safe.
class Recorder {
 public:
  Recorder(const std::string& trace, const std::string& pcap) {
    if (trace == "-") {
      lines_.reset(stderr);
    } else if (!trace.empty()) {
      lines_.reset(std::fopen(trace.c_str(), "w"));
      if (lines_ == nullptr) cannot_write(trace, std::strerror(errno));
    }
    if (pcap.empty()) return;
    link_.reset(pcap_open_dead(DLT_EN10MB, kSnapBytes));
    packets_.reset(pcap_dump_open(link_.get(), pcap.c_str()));
    if (packets_ == nullptr) cannot_write(pcap, pcap_geterr(link_.get()));
  }

  [[nodiscard]] std::string next_connection() {
    const std::lock_guard lock(mu_);
    return std::to_string(++connections_);
  }
  [[nodiscard]] Duration since_start(TimePoint now) const { return now - start_; }

  void write(const std::vector<std::string>& lines) {
    if (lines_ == nullptr || lines.empty()) return;
    const std::lock_guard lock(mu_);
    for (const std::string& line : lines) std::fprintf(lines_.get(), "%s\n", line.c_str());
    report(std::fflush(lines_.get()) == 0);
  }
  void write(const std::vector<trace::Packet>& packets, TimePoint now) {
    if (packets_ == nullptr) return;
    const auto at =
        std::chrono::duration_cast<std::chrono::microseconds>(wall_start_.time_since_epoch() + (now - start_));
    pcap_pkthdr header{};
    header.ts.tv_sec = static_cast<time_t>(at.count() / 1000000);
    header.ts.tv_usec = static_cast<suseconds_t>(at.count() % 1000000);
    const std::lock_guard lock(mu_);
    for (const trace::Packet& p : packets) {
      header.caplen = header.len = static_cast<bpf_u_int32>(p.size());
      pcap_dump(reinterpret_cast<u_char*>(packets_.get()), &header, reinterpret_cast<const u_char*>(p.data()));
    }
    report(pcap_dump_flush(packets_.get()) == 0);
  }

 private:
  void report(bool written) {
    if (!written && !std::exchange(failed_, true))
      spdlog::error("cannot write the trace or the capture any more: {}", std::strerror(errno));
  }
  struct CloseFile {
    void operator()(std::FILE* f) const {
      if (f != stderr) std::fclose(f);
    }
  };
  struct ClosePcap {
    void operator()(pcap_t* p) const { pcap_close(p); }
    void operator()(pcap_dumper_t* d) const { pcap_dump_close(d); }
  };

  std::mutex mu_;
  const TimePoint start_ = std::chrono::steady_clock::now();
  const std::chrono::system_clock::time_point wall_start_ = std::chrono::system_clock::now();
  std::unique_ptr<std::FILE, CloseFile> lines_;
  std::unique_ptr<pcap_t, ClosePcap> link_;
  std::unique_ptr<pcap_dumper_t, ClosePcap> packets_;
  std::uint64_t connections_ = 0;
  bool failed_ = false;
};

trace::Endpoint to_trace(const boost::asio::ip::tcp::endpoint& from) {
  namespace ip = boost::asio::ip;
  const ip::address_v6 address =
      from.address().is_v6() ? from.address().to_v6() : ip::make_address_v6(ip::v4_mapped, from.address().to_v4());
  trace::Endpoint out;
  const auto bytes = address.to_bytes();
  std::memcpy(out.address.data(), bytes.data(), bytes.size());
  out.port = from.port();
  return out;
}

class Tap final : public cm::ByteTap {
 public:
  Tap(std::shared_ptr<Recorder> recorder, const cm::TapTarget& target, bool verbose)
      : recorder_(std::move(recorder)),
        local_(to_trace(target.local)),
        remote_(to_trace(target.remote)),
        decoder_(options(verbose)),
        packets_(local_, remote_),
        last_(std::chrono::steady_clock::now()) {
    trace::Pdu open("Open");
    open.word("client", (target.initiator ? local_ : remote_).to_string());
    open.word("server", (target.initiator ? remote_ : local_).to_string()).number("syn", 1);
    const Direction opener = target.initiator ? Direction::kTx : Direction::kRx;
    decoder_.add(recorder_->since_start(last_), opener, "tcp", std::move(open));
    recorder_->write(packets_.handshake(opener), last_);
    flush();
  }
  ~Tap() override {
    decoder_.finish(recorder_->since_start(last_));
    flush();
  }

  void sent(const std::vector<ConstBytes>& pieces, TimePoint now) override { bytes(Direction::kTx, pieces, now); }
  void received(const std::vector<ConstBytes>& pieces, TimePoint now) override { bytes(Direction::kRx, pieces, now); }
  void sent_end(End how, TimePoint now) override { end(Direction::kTx, how, now); }
  void received_end(End how, TimePoint now) override { end(Direction::kRx, how, now); }

 private:
  trace::DecoderOptions options(bool verbose) {
    trace::DecoderOptions o;
    o.connection = recorder_->next_connection();
    o.verbose = verbose;
    if (local_.port == trace::Capture::kNfsRdmaPort || remote_.port == trace::Capture::kNfsRdmaPort)
      o.rpcrdma = trace::RpcGuess::kYes;
    return o;
  }
  void bytes(Direction d, const std::vector<ConstBytes>& pieces, TimePoint now) {
    last_ = now;
    run_.clear();
    for (const ConstBytes p : pieces) run_.insert(run_.end(), p.begin(), p.end());
    decoder_.receive(d, run_, recorder_->since_start(now));
    recorder_->write(packets_.data(d, run_), now);
    flush();
  }
  void end(Direction d, End how, TimePoint now) {
    last_ = now;
    const auto at = recorder_->since_start(now);
    switch (how) {
      case End::kFin:
        decoder_.end(d, trace::Decoder::End::kFin, at);
        recorder_->write({packets_.fin(d)}, now);
        break;
      case End::kReset:
        decoder_.end(d, trace::Decoder::End::kReset, at);
        recorder_->write({packets_.reset(d)}, now);
        break;
      case End::kSilence:
        decoder_.end(d, trace::Decoder::End::kSilence, at);  // and no packet
        break;
    }
    flush();
  }
  void flush() {
    std::vector<std::string> lines;
    for (const trace::Record& r : decoder_.take()) lines.push_back(writer_.line(r));
    recorder_->write(lines);
  }

  std::shared_ptr<Recorder> recorder_;
  trace::Endpoint local_, remote_;
  trace::Decoder decoder_;
  trace::LineWriter writer_{{}};
  trace::PacketMaker packets_;
  std::vector<std::byte> run_;
  TimePoint last_;
};

}  // namespace

void RecorderFlags::add(CLI::App& app) {
  CLI::Option* trace =
      app.add_option("--trace", trace_,
                     "Write a line for each message of every connection to this file; - is standard error")
          ->type_name("FILE");
  app.add_flag("--trace-fpdus", verbose_, "... and for each of the frames that a message is cut into")->needs(trace);
  app.add_option("--pcap", pcap_, "Write a capture of every connection, with packet headers made up, to this file")
      ->type_name("FILE");
}

cm::TapMaker RecorderFlags::tap_maker() const {
  if (trace_.empty() && pcap_.empty()) return {};
  return [recorder = std::make_shared<Recorder>(trace_, pcap_), verbose = verbose_](const cm::TapTarget& t) {
    return std::make_shared<Tap>(recorder, t, verbose);
  };
}

void RecorderFlags::apply(cm::Engine& engine) const {
  engine.set_tap_maker(tap_maker());
}

}  // namespace iwarp::tools
