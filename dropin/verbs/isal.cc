#include "dropin/verbs/isal.h"

#include <dlfcn.h>

#include <array>

namespace iwarp::dropin {

// RTLD_LOCAL: the program, and what else it loads, see nothing of it.
mpa::IsalCrc load_isal(const char* library) {
  void* const handle = ::dlopen(library, RTLD_LOCAL | RTLD_NOW);
  if (handle == nullptr) return nullptr;
  const auto crc = reinterpret_cast<mpa::IsalCrc>(::dlsym(handle, "crc32_iscsi"));
  std::array<unsigned char, 9> digits{'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  if (crc != nullptr && ~crc(digits.data(), digits.size(), 0xFFFFFFFFU) == 0xE3069283U) return crc;
  ::dlclose(handle);
  return nullptr;
}

}  // namespace iwarp::dropin

// In place of the one in the archive of mpa, which is linked with ISA-L.
iwarp::mpa::IsalCrc iwarp::mpa::isal_crc() {
  static const IsalCrc kLoaded = iwarp::dropin::load_isal("libisal.so.2");
  return kLoaded;
}
