#include "iwarp/verbs/entropy.h"

#include <openssl/rand.h>

namespace iwarp::verbs {

bool fill_random(MutBytes out) {
  return RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) == 1;
}

}  // namespace iwarp::verbs
