#include "iwarp/rpcrdma/reply_assembly.h"

#include <algorithm>
#include <cstring>

namespace iwarp::rpcrdma {
namespace {

// A chunk, and where its data belong in `rest`.
struct Insertion {
  std::size_t at = 0;
  std::size_t length = 0;
  ByteRange room{};
};
using Insertions = SmallVector<Insertion, 2>;

// The n-th result has the n-th chunk. Servers of Linux pass over results without data: the next one has the chunk then.
// req: RFC8166-4.3.2.1-1 RFC8166-4.3.2.1-4
std::optional<Insertions> match(std::span<const WrittenChunk> chunks, const ResultBinding& results, ConstBytes rest) {
  Insertions out;
  ResultWalker walker(results, rest);
  auto chunk = chunks.begin();
  while (chunk != chunks.end()) {
    const auto item = walker.next();
    if (!item) break;
    if (chunk->empty) {  // req: RFC8166-4.3.2.3-2
      ++chunk;
      continue;
    }
    if (item->length == 0) {
      if (chunk->written == 0) ++chunk;
      continue;
    }
    if (chunk->written == 0) return std::nullopt;  // in line, though there was a chunk. req: RFC8166-6.1-11
    // The count word says how many octets; a peer may have written the padding as well. req: RFC8166-3.4.6.2-3
    if (chunk->written != item->length && chunk->written != item->padded_length()) return std::nullopt;
    out.push_back({item->offset, item->length, chunk->room});
    walker.mark_absent();
    ++chunk;
  }
  // Data that belong to no result.
  if (std::any_of(chunk, chunks.end(), [](const WrittenChunk& c) { return c.written > 0; })) return std::nullopt;
  return out;
}

}  // namespace

std::optional<ByteRange> join_reply(MutBytes memory, std::span<const WrittenChunk> chunks, const ResultBinding& results,
                                    ConstBytes rest) {
  const auto insertions = match(chunks, results, rest);
  if (!insertions) return std::nullopt;
  const std::size_t head = insertions->empty() ? rest.size() : (*insertions)[0].at;
  const std::size_t first = insertions->empty() ? rest.size() : (*insertions)[0].room.offset;
  if (head > first || first > memory.size()) return std::nullopt;
  const std::size_t begin = first - head;
  std::size_t to = begin, from = 0;  // in memory, in rest
  const auto copy = [&](std::size_t n, std::size_t limit) {
    if (n > rest.size() - from || n > limit - std::min(limit, to)) return false;
    std::memmove(memory.data() + to, rest.data() + from, n);
    to += n;
    from += n;
    return true;
  };
  for (const Insertion& i : *insertions) {
    if (i.at < from || !copy(i.at - from, i.room.offset)) return std::nullopt;
    // req: RFC8166-3.4.6.1-1
    if (to != i.room.offset) std::memmove(memory.data() + to, memory.data() + i.room.offset, i.length);
    to += i.length;
    const std::size_t padding = -i.length % 4;  // was neither written nor sent
    if (padding > memory.size() - to) return std::nullopt;
    std::memset(memory.data() + to, 0, padding);
    to += padding;
  }
  if (!copy(rest.size() - from, memory.size())) return std::nullopt;
  return ByteRange{begin, to - begin};
}

}  // namespace iwarp::rpcrdma
