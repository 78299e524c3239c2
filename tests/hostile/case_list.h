// The rows of cases.tsv.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace iwarp::hostile {

struct Case {
  std::string requirement;  // id of requirements/*.tsv
  std::string role;         // of the victim
  std::string script;       // "-" if the reaction is n/a
  std::string expected;     // a Reaction
  std::string note;
};

// "RFC8166-4.5-2 three_octets of rpc responder", for messages and test reports.
std::ostream& operator<<(std::ostream& out, const Case& c);

// Throws when the file cannot be read, or a line has not five columns.
[[nodiscard]] std::vector<Case> read_cases(const std::string& path);
// What the victim of a case has to do; of a gateway: the row of role "gateway" with the same requirement and script, if
// there is one.
[[nodiscard]] const Case& as_gateway(const std::vector<Case>& all, const Case& wanted);

}  // namespace iwarp::hostile
