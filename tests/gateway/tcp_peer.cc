#include "tests/gateway/tcp_peer.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "iwarp/base/wire.h"

namespace iwarp::gateway::test {

using iwarp::test::operator+;

Bytes record_mark(std::size_t bytes, bool last) {
  Bytes out(4);
  store_be<std::uint32_t>(out, static_cast<std::uint32_t>(bytes) | (last ? 0x80000000u : 0u));
  return out;
}

TcpPeer::TcpPeer(tcp::socket socket) : socket_(std::move(socket)) {
  boost::system::error_code ec;
  local_ = socket_.local_endpoint(ec);
  remote_ = socket_.remote_endpoint(ec);
  socket_.set_option(tcp::no_delay(true), ec);
}

void TcpPeer::start() {
  read();
}

void TcpPeer::read() {
  if (reading_ || paused_ || ended_) return;
  reading_ = true;
  socket_.async_read_some(boost::asio::buffer(chunk_),
                          [self = shared_from_this()](boost::system::error_code ec, std::size_t n) {
                            self->reading_ = false;
                            if (self->ended_) return;
                            if (ec) {
                              self->ended_ = true;
                              self->reset_ = ec != boost::asio::error::eof;
                              return;
                            }
                            self->received_bytes += n;
                            self->stream_.insert(self->stream_.end(), self->chunk_.begin(),
                                                 self->chunk_.begin() + static_cast<std::ptrdiff_t>(n));
                            self->parse();
                            self->read();
                          });
}

void TcpPeer::parse() {
  std::size_t at = 0;
  while (stream_.size() - at >= 4) {
    const auto mark = load_be<std::uint32_t>(ConstBytes(stream_).subspan(at));
    const std::size_t bytes = mark & 0x7FFFFFFF;
    if (stream_.size() - at - 4 < bytes) break;
    const auto from = stream_.begin() + static_cast<std::ptrdiff_t>(at + 4);
    record_.insert(record_.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
    at += 4 + bytes;
    ++fragments_;
    if ((mark & 0x80000000) == 0) continue;
    if (fragments_ > 1) ++split_records;
    fragments_ = 0;
    Bytes record = std::exchange(record_, {});
    if (on_record) {
      on_record(*this, std::move(record));
    } else {
      inbox.push_back(std::move(record));
    }
    if (ended_) return;
  }
  stream_.erase(stream_.begin(), stream_.begin() + static_cast<std::ptrdiff_t>(at));
}

void TcpPeer::send(const Bytes& record) {
  send_raw(record_mark(record.size()) + record);
}

void TcpPeer::send_in_fragments(const Bytes& record, std::size_t fragment_bytes) {
  Bytes out;
  for (std::size_t at = 0; at < record.size(); at += fragment_bytes) {
    const std::size_t n = std::min(fragment_bytes, record.size() - at);
    const auto from = record.begin() + static_cast<std::ptrdiff_t>(at);
    out = std::move(out) + record_mark(n, at + n == record.size()) + Bytes(from, from + static_cast<std::ptrdiff_t>(n));
  }
  send_raw(std::move(out));
}

void TcpPeer::send_raw(Bytes bytes) {
  unsent_ += bytes.size();
  outbox_.push_back(std::move(bytes));
  write();
}

void TcpPeer::write() {
  if (writing_ || ended_ || outbox_.empty()) return;
  writing_ = true;
  boost::asio::async_write(socket_, boost::asio::buffer(outbox_.front()),
                           [self = shared_from_this()](boost::system::error_code ec, std::size_t n) {
                             self->writing_ = false;
                             self->unsent_ -= n;
                             if (ec) return;
                             self->outbox_.pop_front();
                             self->write();
                           });
}

void TcpPeer::resume() {
  paused_ = false;
  read();
}

void TcpPeer::close() {
  ended_ = true;
  boost::system::error_code ec;
  socket_.close(ec);
}

void TcpPeer::reset() {
  boost::system::error_code ec;
  socket_.set_option(boost::asio::socket_base::linger(true, 0), ec);
  close();
}

}  // namespace iwarp::gateway::test
