#include "dropin/verbs/capture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include "iwarp/trace/packet_maker.h"

namespace iwarp::dropin {
namespace {

using trace::Direction;
using trace::Packet;

constexpr std::size_t kPacketsAtOnce = 64;  // written with one call: two pieces each

// Of pcap, in this machine's octet order, which readers take from kMagic.
struct FileHeader {
  static constexpr std::uint32_t kMagic = 0xA1B2C3D4;  // times in microseconds
  static constexpr std::uint32_t kEthernet = 1;
  std::uint32_t magic = kMagic;
  std::uint16_t major = 2, minor = 4;
  std::uint32_t zone = 0, accuracy = 0, longest = 262144, link = kEthernet;
};
static_assert(sizeof(FileHeader) == 24);
struct PacketHeader {
  std::uint32_t seconds, microseconds, captured, length;
};
static_assert(sizeof(PacketHeader) == 16);

// Thread-safe.
class File {
 public:
  File(std::string name, std::uint64_t most) : name_(std::move(name)), most_(most) {}
  ~File() {
    if (descriptor_ >= 0) (void)::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const std::vector<Packet>& packets) {
    const auto now =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    const std::lock_guard lock(mutex_);
    if (over_ || !open()) return;
    std::array<PacketHeader, kPacketsAtOnce> headers;
    std::array<iovec, 2 * kPacketsAtOnce> pieces;
    for (std::size_t at = 0; at < packets.size();) {
      std::size_t n = 0;
      std::uint64_t octets = 0;
      for (; n < kPacketsAtOnce && at < packets.size(); ++n, ++at) {
        const auto size = static_cast<std::uint32_t>(packets[at].size());
        headers[n] = {static_cast<std::uint32_t>(now / 1'000'000), static_cast<std::uint32_t>(now % 1'000'000), size,
                      size};
        pieces[2 * n] = {&headers[n], sizeof headers[n]};
        pieces[2 * n + 1] = {const_cast<std::byte*>(packets[at].data()), size};
        octets += sizeof headers[n] + size;
      }
      if (length_ + octets > most_) return stop("is full: what comes now is not in it");
      if (!put(std::span{pieces}.first(2 * n), octets)) return stop(std::strerror(errno));
    }
  }

 private:
  bool open() {
    if (descriptor_ >= 0) return true;
    descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    FileHeader header;
    iovec piece{&header, sizeof header};
    if (descriptor_ >= 0 && put({&piece, 1}, sizeof header)) return true;
    stop(std::strerror(errno));
    return false;
  }
  // Whole, or not at all: false, with errno.
  bool put(std::span<const iovec> pieces, std::uint64_t octets) {
    const ssize_t n = ::writev(descriptor_, pieces.data(), static_cast<int>(pieces.size()));
    if (n == static_cast<ssize_t>(octets)) {
      length_ += octets;
      return true;
    }
    const int error = n < 0 ? errno : ENOSPC;
    if (n > 0) (void)!::ftruncate(descriptor_, static_cast<off_t>(length_));
    errno = error;
    return false;
  }
  void stop(const char* why) {
    over_ = true;
    std::fprintf(stderr, "iwarp: trace %s: %s\n", name_.c_str(), why);
  }

  const std::string name_;
  const std::uint64_t most_;
  std::mutex mutex_;
  int descriptor_ = -1;
  std::uint64_t length_ = 0;
  bool over_ = false;
};

trace::Endpoint to_trace(const boost::asio::ip::tcp::endpoint& from) {
  namespace ip = boost::asio::ip;
  const auto octets =
      (from.address().is_v6() ? from.address().to_v6() : ip::make_address_v6(ip::v4_mapped, from.address().to_v4()))
          .to_bytes();
  trace::Endpoint to;
  static_assert(sizeof octets == sizeof to.address);
  std::memcpy(to.address.data(), octets.data(), octets.size());
  to.port = from.port();
  return to;
}

class Tap final : public cm::ByteTap {
 public:
  Tap(std::shared_ptr<File> file, const cm::TapTarget& of)
      : file_(std::move(file)), maker_(to_trace(of.local), to_trace(of.remote)) {
    file_->write(maker_.handshake(of.initiator ? Direction::kTx : Direction::kRx));
  }

  void sent(const std::vector<ConstBytes>& pieces, TimePoint) override { write(Direction::kTx, pieces); }
  void received(const std::vector<ConstBytes>& pieces, TimePoint) override { write(Direction::kRx, pieces); }
  void sent_end(End how, TimePoint) override { end(Direction::kTx, how); }
  void received_end(End how, TimePoint) override { end(Direction::kRx, how); }

 private:
  void write(Direction direction, const std::vector<ConstBytes>& pieces) {
    run_.clear();
    for (const ConstBytes piece : pieces) run_.insert(run_.end(), piece.begin(), piece.end());
    file_->write(maker_.data(direction, run_));
  }
  void end(Direction direction, End how) {
    switch (how) {
      case End::kFin:
        return file_->write({maker_.fin(direction)});
      case End::kReset:
        return file_->write({maker_.reset(direction)});
      case End::kSilence:  // no packet said so
        return;
    }
  }

  const std::shared_ptr<File> file_;
  trace::PacketMaker maker_;
  std::vector<std::byte> run_;
};

}  // namespace

std::string capture_file(const Settings& from) {
  if (from.trace.empty() || from.trace_process == ::getpid()) return from.trace;
  return from.trace + "." + std::to_string(::getpid());
}

cm::TapMaker capture_to(std::string file, std::uint64_t most) {
  return [to = std::make_shared<File>(std::move(file), most)](const cm::TapTarget& of) {
    return std::make_shared<Tap>(to, of);
  };
}

}  // namespace iwarp::dropin
