// Mapped memory of a stream: its own, and what the peer tells of.
#include <algorithm>
#include <cerrno>

#include "dropin/rsocket/requests.h"
#include "dropin/rsocket/stream.h"
#include "dropin/verbs/translate.h"

namespace iwarp::dropin::rsockets {

using verbs::SendWr;

int Stream::map(MutBytes memory, std::uint64_t offset) {
  if (over_ || !known_) return ENOTCONN;
  const auto place = std::find_if(maps_.begin(), maps_.end(), [](const Map& m) { return !m.region; });
  if (place == maps_.end()) return ENOMEM;
  auto region = verbs::MemoryRegion::register_memory(pd_, memory,
                                                     {.access = ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite});
  if (!region) return to_errno(region.error().code);
  *place = Map{.memory = memory, .region = std::move(region).value(), .offset = offset};
  maps_to_tell_.push_back(static_cast<std::size_t>(place - maps_.begin()));
  tell_maps();
  return 0;
}

bool Stream::unmap(MutBytes memory) {
  const auto place = std::find_if(maps_.begin(), maps_.end(), [&](const Map& m) {
    return m.region && m.memory.data() == memory.data() && m.memory.size() == memory.size();
  });
  if (place == maps_.end()) return false;
  std::erase(maps_to_tell_, static_cast<std::size_t>(place - maps_.begin()));
  *place = Map{};
  return true;
}

void Stream::tell_maps() {
  while (!maps_to_tell_.empty() && why_not_send() == 0 && may_send_message(2)) {
    const std::size_t index = maps_to_tell_.front();
    const Map& map = maps_[index];
    const Mapping told{.offset = map.offset,
                       .buffer = {.address = map.region.base_to(),
                                  .key = raw(map.region.stag()),
                                  .length = static_cast<std::uint32_t>(map.memory.size())}};
    std::array<std::byte, Mapping::kSize> octets;
    told.write_to(octets);
    std::uint32_t word = Message{Op::kMapped, static_cast<std::uint32_t>(index)}.word();
    const std::uint64_t table = peer_.grants.address + peer_.grants.length * Buffer::kSize;
    const std::array<SendWr, 2> list{inline_write(octets, table + index * Mapping::kSize, peer_.grants.key),
                                     message_of(word, kMapTold)};
    if (!post(list)) return;
    maps_to_tell_.pop_front();
    data_requests_ += 2;
    ++sent_;
  }
}

const Mapping* Stream::find_peer_map(std::uint64_t offset) const {
  const auto found = std::find_if(peer_maps_.begin(), peer_maps_.end(), [&](const Mapping& m) {
    return offset >= m.offset && offset - m.offset < m.buffer.length;
  });
  return found == peer_maps_.end() ? nullptr : &*found;
}

bool Stream::can_write_mapped() const {
  return why_not_send() == 0 && open_ && data_requests_ < sizes_.send_requests && ring_.free() > 0;
}

std::size_t Stream::write_mapped(ConstBytes octets, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < octets.size() && can_write_mapped()) {
    const Mapping* const map = find_peer_map(offset + done);
    if (map == nullptr) break;
    const std::uint64_t into = offset + done - map->offset;
    const std::size_t length = std::min({octets.size() - done, kMostOctetsOfWrite, ring_.in_a_row(),
                                         static_cast<std::size_t>(map->buffer.length - into)});
    SendWr wr =
        write_from_ring(octets.subspan(done, length), {.address = map->buffer.address + into, .key = map->buffer.key});
    wr.wr_id = kDirect | length;
    ++data_requests_;
    if (!post({&wr, 1})) break;
    done += length;
  }
  return done;
}

}  // namespace iwarp::dropin::rsockets
