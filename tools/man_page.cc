#include "tools/man_page.h"

#include <algorithm>
#include <sstream>

namespace iwarp::tools {
namespace {

// Text that roff prints as it is.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(const std::string& text) {
  return "\\fB" + escaped(text) + "\\fR";
}
std::string italic(const std::string& text) {
  return "\\fI" + escaped(text) + "\\fR";
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  // An empty group hides an option from --help, and so from here.
  return app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); });
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); });
}

std::string option_head(const CLI::Option& o) {
  std::string head;
  const auto add = [&](const std::string& word) { head += (head.empty() ? "" : ", ") + bold(word); };
  for (const std::string& name : o.get_snames()) add("-" + name);
  for (const std::string& name : o.get_lnames()) add("--" + name);
  if (o.get_positional()) head += (head.empty() ? "" : ", ") + italic(o.get_name(true, false));
  const bool takes_value = o.get_type_size() != 0 && !o.get_type_name().empty();
  if (takes_value && !o.nonpositional()) return head;
  return takes_value ? head + " " + italic(o.get_type_name()) : head;
}

std::string option_text(const CLI::Option& o) {
  std::string s = ".TP\n" + option_head(o) + "\n";
  s += o.get_description().empty() ? "\\&" : escaped(o.get_description());
  if (!o.get_default_str().empty()) s += escaped(" [" + o.get_default_str() + "]");
  return s + "\n";
}

// Options by their groups, as --help has them; `level` is the macro of the headings.
std::string options_text(const CLI::App& app, const char* level) {
  std::string s;
  for (const std::string& group : app.get_groups()) {
    std::string options;
    for (const CLI::Option* o : shown_options(app)) {
      if (o->get_group() == group) options += option_text(*o);
    }
    if (!options.empty()) s += std::string(level) + " \"" + upper(group) + "\"\n" + options;
  }
  return s;
}

// The footer as it stands, its lines kept, under the headings that man pages have for them.
std::string footer_text(const CLI::App& app, const char* level) {
  const std::string kExit = "Exit code:";
  std::string s, heading;
  std::istringstream lines(app.get_footer());
  for (std::string line; std::getline(lines, line);) {
    const bool examples = line == "Examples:" || line == "Example:";
    const bool exit_code = line.compare(0, kExit.size(), kExit) == 0;
    const std::string next = examples ? "EXAMPLES" : exit_code ? "EXIT STATUS" : heading.empty() ? "NOTES" : heading;
    if (next != heading) {
      s += (heading.empty() ? "" : ".fi\n") + std::string(level) + " \"" + next + "\"\n.nf\n";
      heading = next;
    }
    if (exit_code) line.erase(0, line.find_first_not_of(' ', kExit.size()));
    if (!examples) s += escaped(line) + "\n";
  }
  return heading.empty() ? s : s + ".fi\n";
}

std::string synopsis(const std::string& command, const CLI::App& app) {
  std::string s = ".SH SYNOPSIS\n";
  const auto list = subcommands_of(app);
  if (list.empty()) {
    s += bold(command) + " [" + italic("OPTION") + "]...";
    for (const CLI::Option* o : shown_options(app)) {
      if (!o->get_positional()) continue;
      const std::string name = italic(o->get_name(true, false));
      s += o->get_required() ? " " + name : " [" + name + "]";
    }
    return s + "\n";
  }
  const char* separator = "";
  for (const CLI::App* sub : list) {
    s += separator + bold(command + " " + sub->get_name()) + " [" + italic("ARGUMENT") + "]...\n";
    separator = ".br\n";
  }
  return s;
}

std::string page_start(const std::string& page, const std::string& command, const CLI::App& app,
                       const std::string& version) {
  return ".TH " + upper(page) + " 1 \"\" \"iwarp " + version + "\" \"User Commands\"\n.SH NAME\n" + escaped(page) +
         " \\- " + escaped(app.get_description()) + "\n" + synopsis(command, app);
}

ManPage subcommand_page(const CLI::App& parent, const CLI::App& app, const std::string& version) {
  const std::string page = parent.get_name() + "-" + app.get_name();
  const std::string command = parent.get_name() + " " + app.get_name();
  std::string s = page_start(page, command, app, version) + options_text(app, ".SH") + footer_text(app, ".SH");
  for (const CLI::App* sub : subcommands_of(app)) {
    s += ".SH \"" + upper(command + " " + sub->get_name()) + "\"\n" + escaped(sub->get_description()) + "\n";
    s += options_text(*sub, ".SS") + footer_text(*sub, ".SS");
  }
  return {page, s + ".SH \"SEE ALSO\"\n" + bold(parent.get_name()) + "(1)\n"};
}

}  // namespace

std::vector<ManPage> man_pages(const CLI::App& app) {
  const std::string version = app.version();
  std::string main = page_start(app.get_name(), app.get_name(), app, version) + ".SH COMMANDS\n";
  std::vector<ManPage> pages(1);
  for (const CLI::App* sub : subcommands_of(app)) {
    main += ".TP\n" + bold(app.get_name() + "-" + sub->get_name()) + "(1)\n" + escaped(sub->get_description()) + "\n";
    pages.push_back(subcommand_page(app, *sub, version));
  }
  pages[0] = {app.get_name(), main + options_text(app, ".SH")};
  return pages;
}

}  // namespace iwarp::tools
