#include "bench/rpc_load/messages.h"

#include <initializer_list>

namespace iwarp::bench {
namespace {

constexpr std::uint32_t kLastFragment = 0x80000000;
constexpr std::size_t kXidAt = kMarkBytes;
constexpr std::size_t kProcedureAt = kMarkBytes + 20;
constexpr std::size_t kCountAt = kMarkBytes + 40 + 28 + 36 + 8;  // heads, credential body, file handle, offset

void add(std::vector<std::byte>& to, std::initializer_list<std::uint32_t> words) {
  for (const std::uint32_t w : words) {
    to.resize(to.size() + 4);
    store_be<std::uint32_t>(MutBytes(to).last(4), w);
  }
}

void add_zero_words(std::vector<std::byte>& to, std::size_t words) {
  to.resize(to.size() + words * 4);
}

void mark(std::vector<std::byte>& record, std::size_t bytes_behind) {
  const std::size_t bytes = record.size() - kMarkBytes + bytes_behind;
  store_be<std::uint32_t>(record, kLastFragment | static_cast<std::uint32_t>(bytes));
}

}  // namespace

std::vector<std::byte> make_call(Procedure procedure, std::uint32_t bytes) {
  std::vector<std::byte> out;
  add(out, {0, 0, 0, 2, 100003, 3, static_cast<std::uint32_t>(procedure)});
  add(out, {1, 28, 0, 5, 0x62656e63, 0x68000000, 0, 0, 0});  // AUTH_SYS of "bench", root, no groups
  add(out, {0, 0});
  if (procedure != Procedure::kNull) {
    add(out, {32});
    add_zero_words(out, 8);   // file handle
    add(out, {0, 0, bytes});  // offset, count
  }
  if (procedure == Procedure::kWrite) {
    add(out, {0, bytes});  // UNSTABLE, data
    add_zero_words(out, bytes / 4);
  }
  mark(out, 0);
  return out;
}

std::vector<std::byte> make_reply_head(Procedure procedure, std::uint32_t bytes) {
  std::vector<std::byte> out;
  add(out, {0, 0, 1, 0, 0, 0, 0});
  switch (procedure) {
    case Procedure::kNull:
      break;
    case Procedure::kRead:
      add(out, {0, 1});
      add_zero_words(out, 21);  // fattr3
      add(out, {bytes, 0, bytes});
      break;
    case Procedure::kWrite:
      add(out, {0, 0, 1});
      add_zero_words(out, 21);
      add(out, {bytes, 0, 0, 0});  // count, UNSTABLE, verifier
      break;
  }
  mark(out, procedure == Procedure::kRead ? bytes : 0);
  return out;
}

void set_xid(MutBytes record, std::uint32_t xid) {
  store_be<std::uint32_t>(record.subspan(kXidAt), xid);
}

Call parse_call(ConstBytes record) {
  Call out;
  out.xid = load_be<std::uint32_t>(record.subspan(kXidAt));
  out.procedure = static_cast<Procedure>(load_be<std::uint32_t>(record.subspan(kProcedureAt)));
  if (out.procedure != Procedure::kNull) out.bytes = load_be<std::uint32_t>(record.subspan(kCountAt));
  return out;
}

}  // namespace iwarp::bench
