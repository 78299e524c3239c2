#include "tools/descriptor_limit.h"

#include <sys/resource.h>

namespace iwarp::tools {

DescriptorLimit raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return {before, limit.rlim_cur};
}

}  // namespace iwarp::tools
