#include "tools/help_format.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "tools/option_words.h"

namespace iwarp::tools {
namespace {

// Where the second column begins.
constexpr std::size_t kTextColumn = 28;

// Two columns: what it is called, and what it does.
std::string entry(const std::string& name, const std::string& text) {
  std::string head = "  " + name, out;
  if (text.empty()) return head + "\n";
  if (head.size() + 2 > kTextColumn) {
    out = head + "\n";
    head.clear();
  }
  head.resize(kTextColumn, ' ');
  return out + filled(head, kTextColumn, text);
}

std::string entry(const CLI::Option& option) {
  std::string name;
  for (const std::string& n : option_names(option)) name += (name.empty() ? "" : ", ") + n;
  // Long names below each other, whether or not there is a short one.
  if (option.get_snames().empty() && !option.get_lnames().empty()) name = "    " + name;
  return entry(name + option_value(option), option_text(option));
}

std::string group(const std::string& title, const std::string& entries) {
  return entries.empty() ? "" : "\n" + title + ":\n" + entries;
}

std::string usage(const CLI::App& app) {
  std::string head = "Usage: " + command_path(app), rest;
  const auto options = shown_options(app);
  if (std::ranges::any_of(options, [](const CLI::Option* o) { return o->nonpositional(); })) rest += " [OPTIONS]";
  for (const CLI::Option* o : options) {
    if (!o->get_positional()) continue;
    const std::string name = o->get_name(true, false);
    rest += o->get_required() ? " " + name : " [" + name + "]";
  }
  if (!shown_commands(app).empty()) rest += app.get_require_subcommand_min() > 0 ? " COMMAND" : " [COMMAND]";
  return head + rest + "\n";
}

// An indented line: as it is, or, when it is too long, its last column filled.
std::string kept(const std::string& line) {
  if (line.size() <= kHelpColumns) return line + "\n";
  const std::size_t begin = line.find_first_not_of(' ');
  std::size_t column = line.find("  ", begin);
  column = column == std::string::npos ? std::string::npos : line.find_first_not_of(' ', column);
  if (column == std::string::npos || column > kHelpColumns / 2)
    return filled(std::string(begin, ' '), begin + 4, line.substr(begin));
  return filled(line.substr(0, column), column, line.substr(column));
}

// Lines that are not indented belong together, until one ends with a full stop or a colon.
std::string footer(const std::string& text) {
  std::string out, paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) out += filled("", 0, paragraph);
    paragraph.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == ' ') {
      flush();
      out += kept(line);
      continue;
    }
    paragraph += (paragraph.empty() ? "" : " ") + line;
    if (line.back() == '.' || line.back() == ':') flush();
  }
  flush();
  return out;
}

}  // namespace

std::string filled(const std::string& head, std::size_t indent, const std::string& text) {
  std::string out, line = head;
  bool fresh = true;  // nothing but the head or the indent stands in the line
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!fresh && line.size() + 1 + word.size() > kHelpColumns) {
      out += line + "\n";
      line = std::string(indent, ' ');
      fresh = true;
    }
    line += (fresh ? "" : " ") + word;
    fresh = false;
  }
  return out + line + "\n";
}

std::string HelpFormat::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  std::string out = filled("", 0, app->get_description()) + usage(*app);
  std::string arguments;
  for (const CLI::Option* o : shown_options(*app)) {
    if (o->get_positional()) arguments += entry(*o);
  }
  out += group("Arguments", arguments);
  for (const std::string& title : app->get_groups()) {
    std::string options;
    for (const CLI::Option* o : shown_options(*app)) {
      if (o->get_group() == title && o->nonpositional()) options += entry(*o);
    }
    out += group(title, options);
  }
  std::string commands;
  for (const CLI::App* command : shown_commands(*app))
    commands += entry(command->get_name(), command->get_description());
  out += group("Commands", commands);
  if (!app->get_footer().empty()) out += "\n" + footer(app->get_footer());
  return out;
}

}  // namespace iwarp::tools
