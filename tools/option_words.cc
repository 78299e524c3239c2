#include "tools/option_words.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

namespace iwarp::tools {
namespace {

// What an option's type name holds: "TEXT", "UINT:INT in [1 - 96]", "TEXT:{on,off}", "on|off", "FILE".
struct Type {
  explicit Type(const CLI::Option& option) {
    std::string text = option.get_type_name();
    if (const std::size_t at = text.find(" in ["); at != std::string::npos) {
      range = between(text, at + 5, "]");
      if (const std::size_t dash = range.find(" - "); dash != std::string::npos) range.replace(dash, 3, "-");
    }
    if (const std::size_t at = text.find(":{"); at != std::string::npos) {
      choices = split(between(text, at + 2, "}"), ',');
      text.erase(at);
    } else if (text.find('|') != std::string::npos) {
      choices = split(text.substr(0, text.find(':')), '|');
    }
    if (!range.empty()) text.erase(text.rfind(':', text.find(" in [")));
    name = text;
  }

  static std::string between(const std::string& text, std::size_t from, const char* end) {
    return text.substr(from, text.find(end, from) - from);
  }
  static std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, separator);) out.push_back(word);
    return out;
  }

  std::string name, range;
  std::vector<std::string> choices;
};

bool is_flag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

bool is_number(const std::string& type) {
  return type == "INT" || type == "UINT" || type == "FLOAT";
}

// For a value that nobody has named.
std::string usual_name(const CLI::Option& option, const Type& type) {
  if (!type.choices.empty()) return "WORD";
  if (!is_number(type.name)) {
    std::string word = option_names(option).back();
    word.erase(0, word.rfind('-') + 1);
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return word;
  }
  return option.get_description().rfind("Seconds", 0) == 0 ? "SECONDS" : "N";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// "Patience (default a minute)" as "Patience" and "a minute".
std::pair<std::string, std::string> without_default(const std::string& text) {
  const std::size_t at = text.rfind(" (default");
  if (at == std::string::npos || text.find(')', at) + 1 != text.size()) return {text, ""};
  const std::size_t from = text.find_first_not_of(": ", at + 9);
  return {text.substr(0, at), text.substr(from, text.size() - from - 1)};
}

// "0.100000" as "0.1".
std::string without_zeros(const std::string& number) {
  if (number.find('.') == std::string::npos) return number;
  const std::string shorter = number.substr(0, number.find_last_not_of('0') + 1);
  return shorter.back() == '.' ? shorter.substr(0, shorter.size() - 1) : shorter;
}

std::string either(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
  return out;
}

// The parser keeps them in no certain order.
std::vector<std::string> long_names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> out;
  for (const CLI::Option* o : options) out.push_back(option_names(*o).back());
  std::ranges::sort(out);
  return out;
}

}  // namespace

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); });
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); });
}

std::string command_path(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return (parent == nullptr ? "" : command_path(*parent) + " ") + app.get_name();
}

std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  if (option.get_positional()) names.push_back(option.get_name(true, false));
  return names;
}

std::string option_value(const CLI::Option& option) {
  if (!option.nonpositional()) return "";
  const Type type(option);
  const bool named = type.choices.empty() && type.name != "TEXT" && !is_number(type.name);
  if (is_flag(option)) return type.name.rfind('[', 0) == 0 ? "[=" + type.name.substr(1) : "";
  std::string name = named ? type.name : usual_name(option, type);
  if (option.get_delimiter() != '\0' && name.find(',') == std::string::npos) name += "[,...]";
  return option.get_items_expected_min() == 0 ? " [" + name + "]" : " " + name;
}

std::vector<std::string> option_choices(const CLI::Option& option) {
  return Type(option).choices;
}

bool takes_number(const CLI::Option& option) {
  const Type type(option);
  return !type.range.empty() || is_number(type.name);
}

std::string option_text(const CLI::Option& option) {
  const Type type(option);
  const auto [text, said] = without_default(option.get_description());
  const std::string usual = said.empty() && !is_flag(option) ? option.get_default_str() : said;
  std::string notes;
  const auto add = [&notes](const std::string& separator, const std::string& note) {
    notes += (notes.empty() ? "" : separator) + note;
  };
  if (!type.choices.empty()) add("", joined(type.choices));
  if (!type.range.empty()) add("; ", type.range);
  if (!usual.empty()) add(type.choices.empty() ? ", " : "; ", "default " + usual);
  if (const auto others = long_names(option.get_needs()); !others.empty()) add("; ", "needs " + joined(others));
  if (const auto others = long_names(option.get_excludes()); !others.empty()) add("; ", "not with " + joined(others));
  if (option.get_required()) add("; ", "required");
  if (notes.empty()) return text;
  return text + (text.empty() ? "(" : " (") + notes + ")";
}

std::string error_text(const std::string& parsers) {
  static const std::regex range("(.*: )Value (.*) not in range (.*) to (.*)"), choice("(.*: )(.*) not in \\{(.*)\\}"),
      number("Could not convert: (.*) = (.*)"), excluded("(.*) excludes (.*)"), needed("(.*) requires (.*)");
  std::smatch m;
  if (std::regex_match(parsers, m, range))
    return m.str(1) + "'" + m.str(2) + "' is not a number from " + without_zeros(m.str(3)) + " to " +
           without_zeros(m.str(4));
  if (std::regex_match(parsers, m, choice))
    return m.str(1) + "unknown value '" + m.str(2) + "': use " + either(Type::split(m.str(3), ','));
  if (std::regex_match(parsers, m, number)) return m.str(1) + ": '" + m.str(2) + "' is no such number";
  if (std::regex_match(parsers, m, excluded)) return m.str(1) + " does not go with " + m.str(2);
  if (std::regex_match(parsers, m, needed)) return m.str(1) + " needs " + m.str(2);
  return parsers;
}

}  // namespace iwarp::tools
