#include "iwarp/gateway/source_ports.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "iwarp/cm/socket_options.h"

namespace iwarp::gateway {

SourcePorts::SourcePorts(ReservedPort mode, std::optional<std::uint16_t> preferred, const ReservedPortSet& avoid,
                         std::size_t first)
    : mode_(mode), preferred_(preferred), avoid_(avoid), first_(first % kReservedPorts) {
  if (mode_ == ReservedPort::kRequire && preferred_ && !is_reserved(*preferred_)) preferred_.reset();
  if (mode_ == ReservedPort::kOff) no_privilege();
}

std::optional<std::uint16_t> SourcePorts::next() {
  if (preferred_) return std::exchange(preferred_, std::nullopt);
  while (step_ < 2 * kReservedPorts) {
    const bool avoided = step_ >= kReservedPorts;
    const std::size_t index = (first_ + step_++) % kReservedPorts;
    if (avoid_.test(index) == avoided) return static_cast<std::uint16_t>(kFirstReservedPort + index);
  }
  if (mode_ == ReservedPort::kRequire || std::exchange(any_tried_, true)) return std::nullopt;
  return std::uint16_t{0};
}

bool may_bind_reserved_ports() {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  tcp::socket socket(io);
  boost::system::error_code ec;
  cm::open_tcp(socket, tcp::v4(), ec);
  if (ec) return false;
  socket.set_option(boost::asio::socket_base::reuse_address(true), ec);
  socket.bind({boost::asio::ip::address_v4::loopback(), kLastReservedPort}, ec);
  return ec != boost::asio::error::access_denied;
}

}  // namespace iwarp::gateway
