#include "tools/completion.h"

#include <algorithm>
#include <vector>

namespace iwarp::tools {
namespace {

// One command of the tree: the words that it takes, and its flags that take a value.
struct Command {
  std::string path;  // "iwarp perf run"
  std::string subcommands, flags;
  struct Valued {
    std::vector<std::string> names;
    std::string values;  // empty: any
  };
  std::vector<Valued> valued;
};

// "TEXT:{on,off}" and "on|prefer-off|off": what lies between is one of the values.
std::string listed_values(const CLI::Option& o) {
  std::string list = o.get_type_name();
  if (const std::size_t open = list.find('{'); open != std::string::npos) {
    const std::size_t close = list.find('}', open);
    list = list.substr(open + 1, close == std::string::npos ? close : close - open - 1);
    std::ranges::replace(list, ',', ' ');
    return list;
  }
  if (list.find('|') == std::string::npos) return "";
  list = list.substr(0, list.find(':'));
  std::ranges::replace(list, '|', ' ');
  return list;
}

void gather(const CLI::App& app, const std::string& path, std::vector<Command>& to) {
  Command c{path, {}, {}, {}};
  for (const CLI::Option* o : app.get_options([](const CLI::Option* each) { return !each->get_group().empty(); })) {
    Command::Valued v;
    for (const std::string& name : o->get_snames()) v.names.push_back("-" + name);
    for (const std::string& name : o->get_lnames()) v.names.push_back("--" + name);
    for (const std::string& name : v.names) c.flags += (c.flags.empty() ? "" : " ") + name;
    v.values = listed_values(*o);
    if (!v.names.empty() && o->get_items_expected_max() > 0) c.valued.push_back(std::move(v));
  }
  const auto subcommands = app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
  for (const CLI::App* sub : subcommands) c.subcommands += (c.subcommands.empty() ? "" : " ") + sub->get_name();
  to.push_back(std::move(c));
  for (const CLI::App* sub : subcommands) gather(*sub, path + " " + sub->get_name(), to);
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::vector<Command> commands;
  gather(app, app.get_name(), commands);
  std::string below, words, values;
  for (const Command& c : commands) {
    if (&c != &commands.front()) below += (below.empty() ? "" : " | ") + ("\"" + c.path + "\"");
    words += "    \"" + c.path + "\") subcommands=\"" + c.subcommands + "\" flags=\"" + c.flags + "\" ;;\n";
    for (const Command::Valued& v : c.valued) {
      std::string pattern;
      for (const std::string& name : v.names)
        pattern += (pattern.empty() ? "\"" : " | \"") + c.path + " " + name + "\"";
      values += "    " + pattern + ") values=\"" + v.values + "\" takes_value=yes ;;\n";
    }
  }
  return "# shellcheck shell=bash\n"
         "# Completion of iwarp for bash. Made by its build out of what --help says.\n"
         "_iwarp() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=" +
         app.get_name() +
         " i\n"
         "  local subcommands=\"\" flags=\"\" values=\"\" takes_value=no\n"
         "  # bash splits --flag=value at the sign.\n"
         "  if [ \"$cur\" = = ]; then cur=\"\"; elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case \"$command ${COMP_WORDS[i]}\" in\n"
         "      " +
         below +
         ") command+=\" ${COMP_WORDS[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case $command in\n" +
         words +
         "  esac\n"
         "  case \"$command $prev\" in\n" +
         values +
         "  esac\n"
         "  COMPREPLY=()\n"
         "  if [ $takes_value = yes ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\")\n"
         "  elif [[ $cur = -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$subcommands\" -- \"$cur\")\n"
         "  fi\n"
         "}\n"
         "# What has no words of its own is the name of a file.\n"
         "complete -o default -F _iwarp " +
         app.get_name() + "\n";
}

}  // namespace iwarp::tools
