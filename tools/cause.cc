#include "tools/cause.h"

#include <boost/system/system_error.hpp>

namespace iwarp::tools {

std::string cause_of(const std::exception& error) {
  std::string text = error.what();
  const auto* const of_system = dynamic_cast<const boost::system::system_error*>(&error);
  if (of_system == nullptr) return text;
  // "bind: Address already in use [system:98 at /usr/include/boost/...]": the code's part goes.
  const std::string message = of_system->code().message();
  const std::size_t at = text.find(message);
  return at == std::string::npos ? message : text.substr(0, at) + message;
}

}  // namespace iwarp::tools
