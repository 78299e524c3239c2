#include "iwarp/gateway/record_stream.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/container/static_vector.hpp>

namespace iwarp::gateway {
namespace {

// What one system call takes, `limit` octets at most: allocates nothing.
template <class AsioBuffer, class Spans>
auto to_asio(const Spans& spans, std::size_t limit) {
  boost::container::static_vector<AsioBuffer, RecordWriterOptions{}.max_gather> out;
  for (const auto& s : spans.first(std::min(spans.size(), out.capacity()))) {
    const std::size_t n = std::min(s.size(), limit);
    if (n == 0) break;
    out.emplace_back(s.data(), n);
    limit -= n;
  }
  return out;
}

}  // namespace

RecordStream::RecordStream(tcp::socket socket, const RecordOptions& options, rpcrdma::BufferPool& pool, Purpose purpose,
                           Stats& stats)
    : socket_(std::move(socket)),
      reader_(options),
      writer_({.max_records = kMaxQueued, .max_pieces = 2 * kMaxQueued}),
      pool_(pool),
      purpose_(purpose),
      stats_(stats) {
  boost::system::error_code ec;
  socket_.non_blocking(true, ec);
  local_ = socket_.local_endpoint(ec);
  remote_ = socket_.remote_endpoint(ec);
}

std::optional<rpcrdma::Buffer> RecordStream::read() {
  while (!closed_) {
    switch (reader_.state()) {
      case RecordReader::State::kRecord: {
        rpcrdma::Buffer record = std::move(filling_);
        record.set_view(static_cast<std::size_t>(reader_.record().data() - record.storage().data()),
                        reader_.record().size());
        reader_.next();
        ++records_read_;
        return record;
      }
      case RecordReader::State::kNeedBuffer: {
        if (!pool_.can_hold(reader_.wanted_bytes(), purpose_, rpcrdma::kHeadroomBytes)) {
          end(make_error(Errc::kRecordTooLong, "RPC record exceeds the memory of a connection"));
          return std::nullopt;
        }
        auto buffer = pool_.acquire(reader_.wanted_bytes(), purpose_, rpcrdma::kHeadroomBytes);
        if (!buffer) return std::nullopt;
        reader_.give_buffer(buffer->storage().subspan(buffer->headroom()));
        filling_ = std::move(*buffer);
        break;
      }
      case RecordReader::State::kError:
        end(reader_.error());
        return std::nullopt;
      case RecordReader::State::kReceiving:
        if (ended_ || !receive_some()) return std::nullopt;
        break;
    }
  }
  return std::nullopt;
}

bool RecordStream::receive_some() {
  if (read_armed_ || may_read_ == 0) return false;
  if (drained_) {
    wait_readable();
    return false;
  }
  const auto into = to_asio<boost::asio::mutable_buffer>(reader_.rx_buffers(), may_read_);
  boost::system::error_code ec;
  const std::size_t n = socket_.read_some(into, ec);
  ++system_calls_.receives;
  if (!ec) {
    stats_.tcp_bytes(Way::kIn, n);
    octets_read_ += n;
    moved_ += n;
    reader_.rx_commit(n);
    may_read_ -= n;
    drained_ = n < boost::asio::buffer_size(into);  // an end of the stream would only come next: the wait tells
    return true;
  }
  if (ec == boost::asio::error::would_block || ec == boost::asio::error::try_again) {
    wait_readable();
  } else if (ec == boost::asio::error::eof) {
    end(reader_.rx_end().value_or(make_error(Errc::kPeerClosed)));
  } else {
    broken_ = true;
    end(make_error(Errc::kConnectionLost));
  }
  return false;
}

bool RecordStream::send(rpcrdma::Buffer& message) {
  if (closed_ || !can_send()) return false;
  const ConstBytes piece = message.bytes();
  if (auto ok = writer_.add(next_id_, std::span{&piece, 1}); !ok) return false;
  ++next_id_;
  unflushed_ += piece.size();
  sending_.push_back(std::move(message));
  return true;
}

void RecordStream::flush() {
  unflushed_ = 0;
  while (!closed_ && !write_armed_ && !writer_.empty() && may_write_ > 0) {
    const auto from = to_asio<boost::asio::const_buffer>(writer_.tx_buffers(), may_write_);
    boost::system::error_code ec;
    const std::size_t n = socket_.write_some(from, ec);
    ++system_calls_.sends;
    if (ec == boost::asio::error::would_block || ec == boost::asio::error::try_again) return wait_writable();
    if (ec) {
      broken_ = true;
      return end(make_error(Errc::kConnectionLost));
    }
    stats_.tcp_bytes(Way::kOut, n);
    octets_sent_ += n;
    moved_ += n;
    may_write_ -= n;
    writer_.tx_commit(n);
    for (; writer_.poll_written(); ++records_sent_) sending_.pop_front();
    if (n < boost::asio::buffer_size(from)) return wait_writable();  // TCP takes no more
  }
}

bool RecordStream::all_taken() {
  int unacknowledged = 0;
  if (!all_sent() || closed_) return all_sent();
  return ::ioctl(socket_.native_handle(), SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
}

void RecordStream::end_sending() {
  boost::system::error_code ec;
  if (!closed_) socket_.shutdown(tcp::socket::shutdown_send, ec);
}

void RecordStream::wait_readable() {
  if (read_armed_ || closed_) return;
  read_armed_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](boost::system::error_code ec) {
    self->read_armed_ = self->drained_ = false;
    if (!ec && !self->closed_ && self->wake_) self->wake_();
  });
}

void RecordStream::watch_for_reset() {
  if (closed_) return;
  socket_.async_wait(tcp::socket::wait_error, [self = shared_from_this()](boost::system::error_code ec) {
    if (ec || self->closed_) return;
    const int fd = self->socket_.native_handle();
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
      self->broken_ = true;
      self->end(make_error(Errc::kConnectionLost));
      if (self->wake_) self->wake_();
      return;
    }
    // Urgent data mean nothing to RPC. They are taken out of the way, or the wait would end at once for ever, as it
    // would after both ends have closed, or after a read() or write() that has met the reset.
    std::byte urgent;
    if (::recv(fd, &urgent, 1, MSG_OOB | MSG_DONTWAIT) >= 0) self->watch_for_reset();
  });
}

void RecordStream::wait_writable() {
  if (write_armed_ || closed_) return;
  write_armed_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](boost::system::error_code ec) {
    self->write_armed_ = false;
    if (!ec && !self->closed_ && self->wake_) self->wake_();
  });
}

void RecordStream::end(const Error& why) {
  if (!ended_) ended_ = why;
}

void RecordStream::close(bool reset) {
  if (closed_) return;
  closed_ = true;
  boost::system::error_code ec;
  if (reset) socket_.set_option(boost::asio::socket_base::linger(true, 0), ec);
  socket_.close(ec);
  wake_ = {};
  sending_.clear();
  filling_.reset();
}

}  // namespace iwarp::gateway
