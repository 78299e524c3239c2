// RPC and NFS version 3 messages, and transport headers in front of them, as a Linux peer would send them.
#pragma once

#include <gtest/gtest.h>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "tests/support/hex.h"

namespace iwarp::rpcrdma::test {

using iwarp::test::Bytes;
using iwarp::test::operator+;

inline Bytes words(std::initializer_list<std::uint32_t> values) {
  Bytes out(values.size() * 4);
  std::size_t at = 0;
  for (const std::uint32_t v : values) {
    store_be<std::uint32_t>(MutBytes(out).subspan(at), v);
    at += 4;
  }
  return out;
}

// count word, data, padding
inline Bytes opaque(Bytes data) {
  Bytes out = words({static_cast<std::uint32_t>(data.size())}) + data;
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}

inline constexpr std::uint32_t kNfs = 100003;

inline Bytes rpc_call(std::uint32_t xid, std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
                      const Bytes& arguments = {}) {
  return words({xid, 0, 2, program, version, procedure, 0, 0, 0, 0}) + arguments;
}
inline Bytes rpc_reply(std::uint32_t xid, const Bytes& results = {}) {
  return words({xid, 1, 0, 0, 0, 0}) + results;
}

inline Bytes file_handle() {
  return opaque(iwarp::test::pattern(32, 5));
}
inline Bytes null_call(std::uint32_t xid) {
  return rpc_call(xid, kNfs, 3, 0);
}
inline Bytes getattr_call(std::uint32_t xid) {
  return rpc_call(xid, kNfs, 3, 1, file_handle());
}
inline Bytes read_call(std::uint32_t xid, std::uint32_t count) {
  return rpc_call(xid, kNfs, 3, 6, file_handle() + words({0, 0, count}));
}
// The Reply up to and including the count word of the data.
inline Bytes read_reply_head(std::uint32_t xid, std::uint32_t count) {
  return rpc_reply(xid, words({0, 0, count, 1, count}));
}
inline Bytes read_reply(std::uint32_t xid, const Bytes& data) {
  return rpc_reply(xid, words({0, 0, static_cast<std::uint32_t>(data.size()), 1}) + opaque(data));
}
inline Bytes read_error(std::uint32_t xid) {
  return rpc_reply(xid, words({5, 0}));
}
// The Call up to and including the count word of the data.
inline Bytes write_call_head(std::uint32_t xid, std::uint32_t count) {
  return rpc_call(xid, kNfs, 3, 7, file_handle() + words({0, 0, count, 2, count}));
}
inline Bytes write_call(std::uint32_t xid, const Bytes& data) {
  Bytes out = write_call_head(xid, static_cast<std::uint32_t>(data.size())) + data;
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}
inline Bytes write_reply(std::uint32_t xid) {
  return rpc_reply(xid, words({0, 0, 0, 0, 1, 0, 0}));
}
// Its Reply has no bound.
inline Bytes readlink_call(std::uint32_t xid) {
  return rpc_call(xid, kNfs, 3, 5, file_handle());
}
inline Bytes readdir_call(std::uint32_t xid) {
  return rpc_call(xid, kNfs, 3, 16, file_handle() + words({0, 0, 0, 0, 65536}));
}

inline Header header(std::uint32_t xid, Proc proc = Proc::kMsg, std::uint32_t credits = 128) {
  Header h;
  h.xid = xid;
  h.credits = credits;
  h.proc = proc;
  return h;
}
inline Bytes encode(const Header& h, const Bytes& payload = {}) {
  Bytes out(h.encoded_size());
  EXPECT_EQ(h.write_to(out), out.size());
  return out + payload;
}
// A message received: its header, and what lies behind.
struct Decoded {
  Header header;
  Bytes payload;
};
inline ParsedHeader parsed(const Bytes& message, const Limits& limits = {}) {
  ParseResult r = Header::parse(message, limits);
  if (!std::holds_alternative<ParsedHeader>(r)) throw std::invalid_argument(std::get<ParseError>(r).why);
  return std::get<ParsedHeader>(std::move(r));
}
inline Decoded decode(const Bytes& message, const Limits& limits = {}) {
  const ParsedHeader p = parsed(message, limits);
  return {p.header, Bytes(message.begin() + static_cast<std::ptrdiff_t>(p.payload_offset), message.end())};
}

inline Buffer to_buffer(BufferPool& pool, const Bytes& message,
                        BufferPool::Purpose purpose = BufferPool::Purpose::kReply) {
  auto out = pool.acquire(message.size(), purpose);
  if (!out) throw std::bad_alloc();
  std::copy(message.begin(), message.end(), out->bytes().begin());
  return std::move(*out);
}

}  // namespace iwarp::rpcrdma::test
