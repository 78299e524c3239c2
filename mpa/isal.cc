#include "iwarp/mpa/isal.h"

#include <isa-l/crc.h>

namespace iwarp::mpa {

IsalCrc isal_crc() {
  return crc32_iscsi;
}

}  // namespace iwarp::mpa
