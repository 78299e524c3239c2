#include "tools/probe/stranger.h"

#include <algorithm>
#include <array>

#include "iwarp/base/wire.h"

namespace iwarp::tools::probe {
namespace {

constexpr std::size_t kMaxGreeting = 60;

struct Prefix {
  std::string_view begins;
  std::string_view protocol;
};
// The longer ones of a kind first.
constexpr std::array kTexts = {
    Prefix{"HTTP/", "HTTP"},       Prefix{"<!DOCTYPE", "HTTP"},    Prefix{"<html", "HTTP"}, Prefix{"GET ", "HTTP"},
    Prefix{"POST ", "HTTP"},       Prefix{"PRI * HTTP/2", "HTTP"}, Prefix{"SSH-", "SSH"},   Prefix{"RFB 00", "VNC"},
    Prefix{"220 ", "FTP or SMTP"}, Prefix{"220-", "FTP or SMTP"},  Prefix{"* OK", "IMAP"},  Prefix{"+OK", "POP3"}};

std::string_view text_of(ConstBytes octets) {
  return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

std::string first_line(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, text.find_first_of("\r\n"))) {
    if (line.size() == kMaxGreeting) return line + "...";
    line += c >= 0x20 && c < 0x7F ? c : '.';
  }
  return line;
}

unsigned at(ConstBytes octets, std::size_t i) {
  return std::to_integer<unsigned>(octets[i]);
}

// A record of SSL 3.0 to TLS 1.3: type alert or handshake, version 3.x, and no longer than records are.
bool is_tls(ConstBytes o) {
  constexpr std::size_t kHeader = 5, kLongest = (1U << 14U) + 2048;
  if (o.size() < kHeader || (at(o, 0) != 0x15 && at(o, 0) != 0x16) || at(o, 1) != 3 || at(o, 2) > 4) return false;
  const auto length = load_be<std::uint16_t>(o.subspan(3));
  return length > 0 && length <= kLongest;
}

// A frame of NetBIOS with one of SMB 1 to 3 in it.
bool is_smb(ConstBytes o) {
  if (o.size() < 8 || at(o, 0) != 0) return false;
  const unsigned mark = at(o, 4);
  return (mark == 0xFF || mark == 0xFE || mark == 0xFD || mark == 0xFC) && text_of(o).substr(5, 3) == "SMB";
}

// The first record of ONC RPC over TCP: its mark, an xid, and a Reply that was accepted or denied.
bool is_rpc(ConstBytes o) {
  constexpr std::uint32_t kReply = 1;
  if (o.size() < 16) return false;
  const auto mark = load_be<std::uint32_t>(o), length = mark & 0x7FFFFFFFU;
  return (mark & 0x80000000U) != 0 && length >= 12 && length <= (1U << 24U) &&
         load_be<std::uint32_t>(o.subspan(8)) == kReply && load_be<std::uint32_t>(o.subspan(12)) <= 1;
}

// The SETTINGS with which a server of HTTP/2 begins, or the GOAWAY with which it refuses.
bool is_http2(ConstBytes o) {
  if (o.size() < 9 || at(o, 0) != 0 || at(o, 4) != 0 || load_be<std::uint32_t>(o.subspan(5)) != 0) return false;
  const unsigned length = load_be<std::uint16_t>(o.subspan(1));
  return (at(o, 3) == 4 && length > 0 && length % 6 == 0 && length <= 120) ||
         (at(o, 3) == 7 && length >= 8 && length < 256);
}

}  // namespace

std::optional<Stranger> stranger(ConstBytes octets) {
  const std::string_view text = text_of(octets);
  const auto* const found = std::ranges::find_if(kTexts, [&](const Prefix& p) { return text.starts_with(p.begins); });
  if (found != kTexts.end()) return Stranger{found->protocol, first_line(text)};
  if (is_tls(octets)) return Stranger{"TLS", {}};
  if (is_smb(octets)) return Stranger{"SMB", {}};
  if (is_rpc(octets)) return Stranger{"ONC RPC over TCP, as NFS", {}};
  if (is_http2(octets)) return Stranger{"HTTP/2", {}};
  return std::nullopt;
}

std::string to_string(const Stranger& who) {
  return std::string(who.protocol) + (who.greeting.empty() ? "" : ": \"" + who.greeting + "\"");
}

}  // namespace iwarp::tools::probe
