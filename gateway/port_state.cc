#include "iwarp/gateway/port_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace iwarp::gateway {
namespace {

// The first line, then one for each port: server, client, port, seconds since 1970 until it is of use, whether calls
// were outstanding. The last line has their number.
constexpr const char* kTitle = "iwarp-gateway-ports 1";
constexpr std::size_t kMaxEntries = 65536;
constexpr std::size_t kMaxLine = 512;
// What a file may have: longer ones are not ours.
constexpr std::uintmax_t kMaxBytes = (std::uintmax_t{kMaxEntries} + 2) * (kMaxLine + 1);

struct Line {
  std::string server;
  PortMemory::Entry entry;
};

std::chrono::seconds since_epoch(std::chrono::system_clock::time_point t) {
  return std::chrono::ceil<std::chrono::seconds>(t.time_since_epoch());
}

bool parse(const std::string& text, const Clocks& now, Line& to) {
  std::istringstream in(text);
  std::string client;
  unsigned port = 0, outstanding = 0;
  std::int64_t until = 0;
  if (!(in >> to.server >> client >> port >> until >> outstanding) || !(in >> std::ws).eof()) return false;
  boost::system::error_code ec;
  to.entry.client = boost::asio::ip::make_address(client, ec);
  if (ec || port == 0 || port > 65535 || outstanding > 1 || !HostPort::parse(to.server)) return false;
  to.entry.port = static_cast<std::uint16_t>(port);
  to.entry.calls_outstanding = outstanding == 1;
  // So far away at most that nothing overflows: the expiry bounds it further.
  constexpr std::int64_t kDay = 86400;
  const std::int64_t today = since_epoch(now.wall).count();
  to.entry.until = now.steady + std::chrono::seconds(std::clamp(until, today, today + kDay) - today);
  return true;
}

std::string read(std::istream& in, const Clocks& now, std::vector<Line>& lines) {
  std::string text;
  if (!std::getline(in, text) || text != kTitle) return "it does not begin with \"" + std::string(kTitle) + "\"";
  while (std::getline(in, text)) {
    if (text == "end " + std::to_string(lines.size())) return {};
    Line line;
    if (text.size() > kMaxLine || lines.size() == kMaxEntries || !parse(text, now, line))
      return "line " + std::to_string(lines.size() + 2) + " is not as it should be";
    lines.push_back(std::move(line));
  }
  return "its end is missing";
}

// Does not wait for the disk, for which the event loop would stand still: a file that a power cut has cut off is known
// by its end.
bool write(const std::string& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  const bool good = done == text.size();
  const int why = errno;
  ::close(fd);
  errno = why;
  return good;
}

}  // namespace

std::string load_ports(const std::filesystem::path& file, PortMemories& to, const Clocks& now) {
  std::error_code ec;
  const auto status = std::filesystem::status(file, ec);
  if (status.type() == std::filesystem::file_type::not_found) return {};
  const std::string about = file.string() + ": ";
  if (!std::filesystem::is_regular_file(status)) return about + "it cannot be read, or is no file";
  if (const auto size = std::filesystem::file_size(file, ec); ec || size > kMaxBytes) return about + "it is too long";
  std::ifstream in(file);
  if (!in) return about + std::strerror(errno);
  std::vector<Line> lines;
  if (const std::string why = read(in, now, lines); !why.empty()) return about + why;
  for (const Line& line : lines) to.of(line.server)->restore(line.entry, now.steady);
  return {};
}

std::string save_ports(const std::filesystem::path& file, const PortMemories& ports, const Clocks& now) {
  std::ostringstream out;
  out << kTitle << '\n';
  std::size_t n = 0;
  for (const auto& [server, memory] : ports.all()) {
    if (server.find_first_of(" \t\r\n") != std::string::npos) continue;
    for (const PortMemory::Entry& entry : memory->entries(now.steady)) {
      if (n == kMaxEntries) break;
      const auto until =
          since_epoch(now.wall + std::chrono::duration_cast<std::chrono::seconds>(entry.until - now.steady));
      std::ostringstream line;
      line << server << ' ' << entry.client.to_string() << ' ' << entry.port << ' ' << until.count() << ' '
           << (entry.calls_outstanding ? 1 : 0);
      if (line.view().size() > kMaxLine) continue;  // no host has such a name
      out << line.view() << '\n';
      ++n;
    }
  }
  out << "end " << n << '\n';
  const std::string aside = file.string() + ".new";
  if (!write(aside, out.str())) return "cannot write " + aside + ": " + std::strerror(errno);
  if (std::rename(aside.c_str(), file.c_str()) != 0) return "cannot rename " + aside + ": " + std::strerror(errno);
  return {};
}

}  // namespace iwarp::gateway
