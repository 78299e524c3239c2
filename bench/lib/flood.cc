#include "bench/lib/flood.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "iwarp/mpa/crc32c.h"
#include "iwarp/mpa/fpdu_encoder.h"

namespace iwarp::bench {

// Made once, so that the server has more to do with each than this process.
void flood(const Target& server) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(server.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) die("connect");
  constexpr std::array<char, 20> kRequest{'M', 'P', 'A', ' ', 'I', 'D', ' ',  'R', 'e', 'q',
                                          ' ', 'F', 'r', 'a', 'm', 'e', 0x40, 1,   0,   0};  // CRC, revision 1
  std::array<char, 20> reply{};
  if (::send(fd, kRequest.data(), kRequest.size(), 0) != 20) die("send");
  if (::recv(fd, reply.data(), reply.size(), MSG_WAITALL) != 20) die("no Reply");
  std::array<std::byte, 16> fpdu{std::byte{0}, std::byte{14}, std::byte{0xC1}, std::byte{0x40}};
  for (std::size_t i = 0; i < 4; ++i) fpdu[4 + i] = static_cast<std::byte>(server.stag >> (24 - 8 * i));
  for (std::size_t i = 0; i < 8; ++i) fpdu[8 + i] = static_cast<std::byte>(server.to >> (56 - 8 * i));
  mpa::Crc32c crc;
  crc.update(fpdu);
  const mpa::FpduTrailer trailer = mpa::make_trailer(&crc, 14);
  std::vector<std::byte> many;
  for (int i = 0; i < 16384; ++i) {
    many.insert(many.end(), fpdu.begin(), fpdu.end());
    many.insert(many.end(), trailer.bytes.begin(), trailer.bytes.begin() + 4);
  }
  for (std::size_t at = 0;;) {
    const auto n = ::send(fd, many.data() + at, many.size() - at, MSG_NOSIGNAL);
    if (n <= 0) die("the server has ended the flood");
    at = (at + static_cast<std::size_t>(n)) % many.size();
  }
}

}  // namespace iwarp::bench
