#include "iwarp/cm/description.h"

#include <sstream>

#include "iwarp/cm/connection.h"

namespace iwarp::cm {

std::string to_string(const boost::asio::ip::tcp::endpoint& endpoint) {
  std::ostringstream out;
  out << endpoint;
  return out.str();
}

bool ordinary_end(const stream::Disconnected& how) {
  return how.reason.code == Errc::kPeerClosed || how.reason.code == Errc::kAborted;
}

std::string describe_end(const Connection& connection, const stream::Disconnected& how) {
  std::string text = "peer=" + to_string(connection.remote()) + " reason=" + name(how.reason.code) + " " +
                     connection.counters().to_string();
  if (how.sent) text += " terminate_sent=\"" + how.sent->to_string() + "\"";
  if (how.received) text += " terminate_received=\"" + how.received->to_string() + "\"";
  if (!ordinary_end(how)) text += std::string(" why=\"") + how.reason.why + "\"";
  return text;
}

std::string Counters::to_string() const {
  std::ostringstream out;
  out << "tx_send=" << tx.sends << " tx_send_bytes=" << tx.send_bytes << " tx_write=" << tx.writes
      << " tx_write_bytes=" << tx.write_bytes << " tx_read=" << tx.reads << " tx_read_bytes=" << tx.read_response_bytes
      << " rx_send=" << rx.sends << " rx_send_bytes=" << rx.send_bytes << " rx_write=" << rx.writes
      << " rx_write_bytes=" << rx.write_bytes << " rx_read=" << rx.read_requests
      << " rx_read_bytes=" << rx.read_response_bytes << " tx_wake=" << tx.wakes;
  return out.str();
}

}  // namespace iwarp::cm
