#include "iwarp/cm/description.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <vector>

#include "iwarp/cm/connection.h"

namespace iwarp::cm {
namespace {

std::string in_words(const char* name) {
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string name_of_end(bool initiator, const Error& reason) {
  if (reason.code == Errc::kPeerClosed) return initiator ? "server closed" : "client closed";
  if (reason.code == Errc::kAborted) return std::strcmp(reason.why, stream::kClosedHere) == 0 ? "done" : "aborted";
  return in_words(name(reason.code));
}

}  // namespace

std::string to_string(const boost::asio::ip::tcp::endpoint& endpoint) {
  std::ostringstream out;
  out << endpoint;
  return out.str();
}

bool ordinary_end(const stream::Disconnected& how) {
  return how.reason.code == Errc::kPeerClosed || how.reason.code == Errc::kAborted;
}

bool unremarkable_end(bool initiator, const stream::Disconnected& how) {
  return ordinary_end(how) || (!initiator && how.was_established && how.reason.code == Errc::kConnectionLost);
}

bool unremarkable_end(const Connection& connection, const stream::Disconnected& how) {
  return unremarkable_end(connection.initiator(), how);
}

std::string describe_end(const EndFacts& facts, const stream::Disconnected& how, std::size_t columns,
                         const std::string& more) {
  std::string text = "peer=" + to_string(facts.remote) + (more.empty() ? "" : " " + more) + " end=\"" +
                     name_of_end(facts.initiator, how.reason) + "\"";
  if (how.sent) text += " terminate_sent=\"" + how.sent->to_string() + "\"";
  if (how.received) text += " terminate_received=\"" + how.received->to_string() + "\"";
  if (!ordinary_end(how)) text += std::string(" why=\"") + how.reason.why + "\"";
  const std::string counters = facts.counters.to_string(columns - std::min(columns, text.size() + 1));
  return counters.empty() ? text : text + " " + counters;
}

std::string describe_end(const Connection& connection, const stream::Disconnected& how, std::size_t columns,
                         const std::string& more) {
  return describe_end(EndFacts{connection.remote(), connection.initiator(), connection.counters()}, how, columns, more);
}

std::string Counters::to_string(std::size_t columns) const {
  std::vector<std::string> fields;
  const auto add = [&fields](const char* name, std::uint64_t messages, std::uint64_t octets) {
    if (messages != 0 || octets != 0) fields.push_back(name + std::to_string(messages) + "/" + std::to_string(octets));
  };
  // What moves the data comes first: the end may be cut off.
  add("tx_write=", tx.writes, tx.write_bytes);
  add("rx_write=", rx.writes, rx.write_bytes);
  add("tx_read=", tx.reads, rx.read_response_bytes);
  add("rx_read=", rx.read_requests, tx.read_response_bytes);
  add("tx_send=", tx.sends, tx.send_bytes);
  add("rx_send=", rx.sends, rx.send_bytes);
  add("rx_early=", rx.early, rx.early_bytes);
  if (tx.wakes != 0) fields.push_back("tx_wake=" + std::to_string(tx.wakes));

  constexpr std::size_t kMark = 4;  // " ..."
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t room = i + 1 < fields.size() ? kMark : 0;
    if (columns < room || text.size() + 1 + fields[i].size() > columns - room) return text + (i == 0 ? "..." : " ...");
    text += (i == 0 ? "" : " ") + fields[i];
  }
  return text;
}

}  // namespace iwarp::cm
