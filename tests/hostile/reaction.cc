#include "tests/hostile/reaction.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <regex>

namespace iwarp::hostile {

Reaction term(const TerminateCode& code) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "term %X/%X/%X", static_cast<unsigned>(code.layer),
                static_cast<unsigned>(code.type), static_cast<unsigned>(code.code));
  return text.data();
}

bool in_vocabulary(std::string_view reaction) {
  static constexpr std::array kWords = {
      kErrChunk,         kErrVers,        kGarbageArgs,       kClose, kReject, kIgnore,
      kSessionTerminate, kEnhancedReject, kAssociationAborted};
  if (std::find(kWords.begin(), kWords.end(), reaction) != kWords.end()) return true;
  static const std::regex terminate("term [0-9A-F]/[0-9A-F]/[0-9A-F]{1,2}");
  return not_applicable(reaction) || std::regex_match(reaction.begin(), reaction.end(), terminate);
}

bool not_applicable(std::string_view reaction) {
  static constexpr std::string_view kPrefix = "n/a: ";
  return reaction.starts_with(kPrefix) && reaction.size() > kPrefix.size();
}

}  // namespace iwarp::hostile
