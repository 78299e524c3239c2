#include "tools/man_page.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include "tools/man_text.h"
#include "tools/option_words.h"
#include "tools/roff.h"

namespace iwarp::tools {
namespace {

using roff::bold;
using roff::escaped;
using roff::italic;

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string option_head(const CLI::Option& o) {
  if (o.get_positional()) return italic(o.get_name(true, false));
  std::string head;
  for (const std::string& name : option_names(o)) head += (head.empty() ? "" : ", ") + bold(name);
  const std::string value = option_value(o);
  return value.empty() ? head : head + (value.front() == ' ' ? " " + italic(value.substr(1)) : italic(value));
}

// Options by their groups, as --help has them: those of no special group first.
std::string options_text(const CLI::App& app) {
  std::string usual, grouped;
  for (const std::string& group : app.get_groups()) {
    std::string options;
    for (const CLI::Option* o : shown_options(app)) {
      if (o->get_group() == group) options += roff::item(option_head(*o), option_text(*o));
    }
    if (options.empty()) continue;
    if (upper(group) == "OPTIONS") {
      usual += options;
    } else {
      grouped += ".SS \"" + group + "\"\n" + options;
    }
  }
  return usual.empty() && grouped.empty() ? "" : ".SH OPTIONS\n" + usual + grouped;
}

// The sections of a --help footer: a line that begins with "Word:" or "Two words:" begins one. What is indented keeps
// its lines. What comes before the first is NOTES.
class FooterSections {
 public:
  explicit FooterSections(const std::string& footer) {
    std::istringstream lines(footer);
    for (std::string line; std::getline(lines, line);) add(std::move(line));
    end_of_kept_lines();
  }
  // Empty without it. Each can be taken once.
  std::string take(const std::string& heading) {
    const auto found = sections_.extract(heading);
    return found.empty() || found.mapped().empty() ? "" : ".SH \"" + heading + "\"\n" + found.mapped();
  }
  // Those not taken, in their order.
  std::string take_rest() {
    std::string s;
    for (const std::string& heading : order_) s += take(heading);
    return s;
  }

 private:
  // The length of the heading's words at the beginning of the line; 0: none.
  static std::size_t heading_length(const std::string& line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0 || colon > 20 ||
        std::isupper(static_cast<unsigned char>(line[0])) == 0)
      return 0;
    if (colon + 1 < line.size() && line[colon + 1] != ' ') return 0;
    const auto is_word = [](unsigned char c) { return std::isalpha(c) != 0 || c == ' '; };
    const auto words = std::ranges::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), ' ') + 1;
    return words <= 2 && std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), is_word) ? colon
                                                                                                               : 0;
  }
  static std::string usual_name(const std::string& heading) {
    if (heading == "EXAMPLE") return "EXAMPLES";
    return heading == "EXIT CODE" || heading == "EXIT CODES" ? "EXIT STATUS" : heading;
  }
  void add(std::string line) {
    if (const std::size_t length = heading_length(line); length != 0) {
      end_of_kept_lines();
      heading_ = usual_name(upper(line.substr(0, length)));
      if (std::ranges::find(order_, heading_) == order_.end()) order_.push_back(heading_);
      line.erase(0, std::min(line.size(), line.find_first_not_of(' ', length + 1)));
      if (line.empty()) return;
    } else if (order_.empty()) {
      order_.push_back(heading_);
    }
    std::string& text = sections_[heading_];
    const bool keep = line.starts_with(' ');
    if (keep && !kept_) text += ".nf\n";
    if (!keep) end_of_kept_lines();
    kept_ = keep;
    text += line.empty() ? ".PP\n" : escaped(line) + "\n";
  }
  void end_of_kept_lines() {
    if (kept_) sections_[heading_] += ".fi\n";
    kept_ = false;
  }

  std::map<std::string, std::string> sections_;
  std::vector<std::string> order_;
  std::string heading_ = "NOTES";
  bool kept_ = false;
};

std::string synopsis(const std::string& command, const CLI::App& app) {
  std::string s = ".SH SYNOPSIS\n";
  const auto list = shown_commands(app);
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

std::string name_of_page(std::string command) {
  std::ranges::replace(command, ' ', '-');
  return command;
}
std::string reference(const std::string& page) {
  return bold(page) + "(1)";
}

// The section as the footer has it, or else these items; empty without both.
std::string section(const std::string& heading, FooterSections& footer, std::span<const ManItem> items) {
  std::string s = footer.take(heading);
  if (!s.empty() || items.empty()) return s;
  s = ".SH \"" + heading + "\"\n";
  for (const ManItem& item : items) s += roff::item(bold(std::string(item.name)), std::string(item.text));
  return s;
}

// The page of a command, and those of its subcommands. `parents`: their pages, from the top.
void add_pages(std::vector<ManPage>& pages, const CLI::App& app, const std::string& command,
               const std::vector<std::string>& parents, const std::string& version) {
  const std::string page = name_of_page(command);
  const std::size_t index = pages.size();
  pages.push_back({page, "", '1'});
  std::string s = ".TH " + upper(page) + " 1 \"\" \"iwarp " + version + "\" \"User Commands\"\n.SH NAME\n" +
                  escaped(page) + " \\- " + escaped(app.get_description()) + "\n" + synopsis(command, app);
  const ManText* text = man_text(command);
  s += ".SH DESCRIPTION\n" +
       roff::paragraphs(text != nullptr ? std::string(text->description) : app.get_description() + ".");
  std::vector<std::string> related = parents;
  if (const auto list = shown_commands(app); !list.empty()) {
    s += ".SH COMMANDS\n";
    std::vector<std::string> above = parents;
    above.push_back(page);
    for (const CLI::App* sub : list) {
      related.push_back(page + "-" + sub->get_name());
      s += ".TP\n" + reference(related.back()) + "\n" + escaped(sub->get_description()) + "\n";
      add_pages(pages, *sub, command + " " + sub->get_name(), above, version);
    }
  }
  FooterSections footer(app.get_footer());
  const ManText beyond = text != nullptr ? *text : ManText{};
  const std::string exit = section("EXIT STATUS", footer, beyond.exit_statuses);
  const std::string files = section("FILES", footer, beyond.files), examples = footer.take("EXAMPLES");
  s += options_text(app) + footer.take_rest() + exit + files + examples + ".SH \"SEE ALSO\"\n";
  for (std::size_t i = 0; i < related.size(); ++i) s += reference(related[i]) + (i + 1 < related.size() ? ",\n" : "\n");
  pages[index].text = std::move(s);
}

}  // namespace

std::vector<ManPage> man_pages(const CLI::App& app) {
  std::vector<ManPage> pages;
  add_pages(pages, app, app.get_name(), {}, app.version());
  return pages;
}

}  // namespace iwarp::tools
