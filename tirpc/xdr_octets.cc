#include "iwarp/tirpc/xdr_octets.h"

#include <algorithm>
#include <cstring>

#include "iwarp/base/wire.h"

namespace iwarp::tirpc {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 31;

}  // namespace

struct XdrOctets::Operations {
  static XdrOctets& self(XDR* xdrs) { return *static_cast<XdrOctets*>(xdrs->x_private); }

  static bool_t get_long(XDR*, long*) { return FALSE; }
  static bool_t put_long(XDR* xdrs, const long* value) {
    char* const to = self(xdrs).claim(4);
    if (to == nullptr) return FALSE;
    store_be(std::as_writable_bytes(std::span<char, 4>(to, 4)), static_cast<std::uint32_t>(*value));
    return TRUE;
  }
  static bool_t get_bytes(XDR*, char*, u_int) { return FALSE; }
  static bool_t put_bytes(XDR* xdrs, const char* from, u_int n) {
    if (n == 0) return TRUE;
    if (self(xdrs).append(from, n)) return TRUE;
    char* const to = self(xdrs).claim(n);
    if (to == nullptr) return FALSE;
    std::memcpy(to, from, n);
    return TRUE;
  }
  static u_int get_position(XDR* xdrs) { return static_cast<u_int>(self(xdrs).at_); }
  // Also beyond the end: who writes a length behind its data leaves room for it so, as RPCSEC_GSS does.
  static bool_t set_position(XDR* xdrs, u_int position) {
    if (position > kMost) return FALSE;
    XdrOctets& s = self(xdrs);
    if (position > s.octets_.size()) s.octets_.resize(position);
    s.at_ = position;
    return TRUE;
  }
  // The caller writes there at once.
  static int32_t* in_line(XDR* xdrs, u_int n) { return reinterpret_cast<int32_t*>(self(xdrs).claim(n)); }
  static void destroy(XDR*) {}
  static bool_t control(XDR*, int, void*) { return FALSE; }

  static constexpr XDR::xdr_ops kTable{get_long,     put_long, get_bytes, put_bytes, get_position,
                                       set_position, in_line,  destroy,   control};
};

XdrOctets::XdrOctets(rpc::Octets& octets) : octets_(octets), at_(octets.size()) {
  octets_.reserve(kUsualBytes);
  xdr_.x_op = XDR_ENCODE;
  xdr_.x_ops = &Operations::kTable;
  xdr_.x_private = this;
}

char* XdrOctets::claim(std::size_t n) {
  if (n > kMost - at_) return nullptr;
  if (at_ + n > octets_.size()) octets_.resize(at_ + n);
  char* const to = reinterpret_cast<char*>(octets_.data() + at_);
  at_ += n;
  return to;
}

bool XdrOctets::append(const char* from, std::size_t n) {
  if (at_ != octets_.size() || n > kMost - at_) return false;
  const auto* const octets = reinterpret_cast<const std::byte*>(from);
  octets_.insert(octets_.end(), octets, octets + n);
  at_ += n;
  return true;
}

void XdrOctets::finish() {
  octets_.resize(at_);
}

}  // namespace iwarp::tirpc
