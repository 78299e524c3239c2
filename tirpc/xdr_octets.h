// An XDR stream of libtirpc that encodes into memory which grows. Internal to tirpc.
#pragma once

#include <rpc/rpc.h>

#include "iwarp/rpc/message.h"

namespace iwarp::tirpc {

// xdr_void(), as a xdrproc_t.
inline bool_t nothing(XDR*, ...) {
  return TRUE;
}

// A stream for XDR_ENCODE. Neither copied nor moved: the XDR knows where this is.
class XdrOctets {
 public:
  // Most messages have less: memory is had once for them.
  static constexpr std::size_t kUsualBytes = 512;

  // Appends to what `octets` holds. It must outlive this object.
  explicit XdrOctets(rpc::Octets& octets);
  XdrOctets(const XdrOctets&) = delete;
  XdrOctets& operator=(const XdrOctets&) = delete;

  [[nodiscard]] XDR* xdr() { return &xdr_; }
  // Cuts what was made ready and not written. To be called at the end.
  void finish();

 private:
  struct Operations;
  // Room for so many, to be written at once; null: they are too many.
  [[nodiscard]] char* claim(std::size_t n);
  // Octets that come last, written once; false: they do not, or are too many.
  [[nodiscard]] bool append(const char* from, std::size_t n);

  rpc::Octets& octets_;
  std::size_t at_;
  XDR xdr_{};
};

}  // namespace iwarp::tirpc
