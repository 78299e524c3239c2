// `iwarp profiles`: the peer profiles that --profile takes, and why each value is what it is.
#include <iostream>

#include "tools/command.h"
#include "tools/help_format.h"
#include "tools/json_file.h"
#include "tools/profile_flag.h"
#include "tools/standard_output.h"

namespace iwarp::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string name;
  JsonFlag json;
};

std::string text(std::string_view view) {
  return std::string(view);
}

std::string list() {
  std::string out;
  for (const stream::Profile& p : stream::profiles()) {
    std::string head = "  " + text(p.name());
    head.resize(20, ' ');
    out += filled(head, head.size(), text(p.peer()));
  }
  return out;
}

std::string detail(const stream::ProfileValue& v) {
  const bool same = v.value == v.default_value();
  std::string notes = same ? "as by default" : "default " + v.option->text(v.default_value());
  if (const auto flag = flag_of(v.option->name); !flag.empty()) notes += "; " + text(flag);
  return "  " + text(v.option->name) + ": " + v.text() + " (" + notes + ")\n" + filled("      ", 6, text(v.reason));
}

std::string detail(const stream::Profile& p) {
  std::string out = filled("", 0, text(p.name()) + ": " + text(p.peer()));
  if (p.values().empty()) out += filled("  ", 2, "It sets nothing: every command keeps its own defaults.");
  for (const stream::ProfileValue& v : p.values()) out += detail(v);
  return out;
}

Json to_json(const stream::ProfileValue& v, std::int64_t value) {
  using Kind = stream::ProfileOption::Kind;
  switch (v.option->kind) {
    case Kind::kFlag:
      return value != 0;
    case Kind::kWord:
      return v.option->text(value);
    case Kind::kCount:
    case Kind::kMilliseconds:
      break;
  }
  return value;
}

Json to_json(const stream::Profile& p) {
  Json j = {{"name", p.name()}, {"peer", p.peer()}, {"values", Json::array()}};
  for (const stream::ProfileValue& v : p.values()) {
    const auto flag = flag_of(v.option->name);
    j["values"].push_back({{"option", v.option->name},
                           {"value", to_json(v, v.value)},
                           {"default", to_json(v, v.default_value())},
                           {"flag", flag.empty() ? Json() : Json(flag)},
                           {"reason", v.reason}});
  }
  return j;
}

int run(const Flags& flags) {
  const stream::Profile* const one = flags.name.empty() ? nullptr : stream::find_profile(flags.name);
  if (one == nullptr && !flags.name.empty()) throw CLI::ValidationError("profiles", unknown_profile(flags.name));
  if (flags.json.given()) {
    JsonOutput json(flags.json);
    Json document = {{"profiles", Json::array()}};
    for (const stream::Profile& p : stream::profiles()) {
      if (one == nullptr || one == &p) document["profiles"].push_back(to_json(p));
    }
    json.write("profiles", document);
    if (flags.json.on_standard_output()) return kExitOk;
  }
  std::cout << (one == nullptr ? list() : detail(*one));
  check_standard_output();
  return kExitOk;
}

}  // namespace

Run add_profiles(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd = app.add_subcommand("profiles", "List the peer profiles that --profile takes, or explain one");
  cmd->add_option("NAME", flags->name, "The one to explain: each value, what it is by default, and why");
  flags->json.add(*cmd, "Print them as JSON");
  cmd->footer(
      "A profile is a set of values for the set-up of connections that suits one kind of peer, named by the peer's "
      "driver.\n"
      "`generic` sets nothing. Flags win over a profile. `iwarp probe` suggests one. The evidence for each value is in "
      "docs/PROFILES.md.\n"
      "Examples:\n"
      "  iwarp profiles\n"
      "  iwarp profiles linux-siw\n"
      "  iwarp rping -c -a 10.0.0.2 --profile linux-siw");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
