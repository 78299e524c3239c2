#include "tools/completion.h"

#include <vector>

#include "tools/option_words.h"

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

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

void gather(const CLI::App& app, const std::string& path, std::vector<Command>& to) {
  Command c{path, {}, {}, {}};
  for (const CLI::Option* o : shown_options(app)) {
    if (o->get_positional()) continue;
    Command::Valued v{option_names(*o), joined(option_choices(*o))};
    c.flags += (c.flags.empty() ? "" : " ") + joined(v.names);
    if (o->get_items_expected_max() > 0) c.valued.push_back(std::move(v));
  }
  for (const CLI::App* sub : shown_commands(app)) c.subcommands += (c.subcommands.empty() ? "" : " ") + sub->get_name();
  to.push_back(std::move(c));
  for (const CLI::App* sub : shown_commands(app)) gather(*sub, path + " " + sub->get_name(), to);
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
