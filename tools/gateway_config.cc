#include "tools/gateway_config.h"

#include <spdlog/fmt/fmt.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "iwarp/cm/description.h"
#include "tools/gateway_settings.h"
#include "tools/nearest_key.h"
#include "tools/option_words.h"

namespace iwarp::tools {
namespace {

constexpr std::size_t kMaxListeners = 64;
constexpr std::size_t kMaxNameLength = 64;
// Their values are lists: an array of texts is as good as one with commas.
const std::set<std::string> kLists = {"allow", "source-map", "rtr"};

struct Problem {
  toml::source_position at;
  std::string text;
};
using Problems = std::vector<Problem>;

// Texts name flags; in a file these are keys.
std::string without_dashes(std::string text) {
  for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
    const bool word_before = at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0;
    if (!word_before && at + 2 < text.size() && std::isalpha(static_cast<unsigned char>(text[at + 2])) != 0) {
      text.erase(at, 2);
    } else {
      at += 2;
    }
  }
  return text;
}

// Of a value of that option, in a file.
enum class Kind : std::uint8_t { kFlag, kNumber, kText };

Kind kind_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return Kind::kFlag;
  return takes_number(option) ? Kind::kNumber : Kind::kText;
}

std::string wanted(Kind kind, bool list) {
  switch (kind) {
    case Kind::kFlag:
      return "true or false";
    case Kind::kNumber:
      return "a whole number, without quotes";
    case Kind::kText:
      return list ? "text in quotes, or a list of such" : "text in quotes";
  }
  return "?";
}

std::optional<std::string> joined(const toml::array& array) {
  std::string out;
  for (const toml::node& element : array) {
    const auto* text = element.as_string();
    if (text == nullptr) return std::nullopt;
    out += (out.empty() ? "" : ",") + text->get();
  }
  return out;
}

// As it would stand behind the flag's "="; nothing: of the wrong type.
std::optional<std::string> value_of(const toml::node& node, Kind kind, bool list) {
  if (const auto* flag = node.as_boolean(); flag != nullptr && kind == Kind::kFlag)
    return std::string(flag->get() ? "true" : "false");
  if (const auto* number = node.as_integer(); number != nullptr && kind == Kind::kNumber)
    return std::to_string(number->get());
  if (const auto* text = node.as_string(); text != nullptr && kind == Kind::kText) return text->get();
  if (const auto* array = node.as_array(); array != nullptr && list) return joined(*array);
  return std::nullopt;
}

// One table's keys as the flags of `Parts`, which have an add().
template <class... Parts>
class Table {
 public:
  // `own`: keys that are no flags, and read by the caller.
  Table(const toml::table& table, std::string what, std::vector<std::string> own, Problems& problems)
      : table_(table), what_(std::move(what)), own_(std::move(own)), problems_(problems) {}

  void read(Parts&... parts) {
    CLI::App app;
    app.set_help_flag();
    (parts.add(app), ...);
    const std::size_t before = problems_.size();
    std::vector<std::string> arguments;
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::ranges::count(own_, name) != 0) continue;
      const CLI::Option* option = app.get_option_no_throw("--" + name);
      if (option == nullptr) {
        unknown(app, key, name);
        continue;
      }
      if (const auto argument = argument_of(*option, name, node)) {
        if (judge(*argument, name, node.source().begin, parts...)) arguments.push_back(*argument);
      }
    }
    if (problems_.size() > before) return;
    std::ranges::reverse(arguments);  // as CLI11 wants them
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& e) {
      problems_.push_back({table_.source().begin, without_dashes(error_text(e.what()))});
    }
  }

 private:
  void unknown(const CLI::App& app, const toml::key& key, const std::string& name) {
    std::vector<std::string> keys = own_;
    for (const CLI::Option* o : app.get_options()) {
      for (const std::string& n : o->get_lnames()) keys.push_back(n);
    }
    const std::string meant = nearest_key(name, keys);
    problems_.push_back({key.source().begin, fmt::format("unknown key '{}' in {}{}", name, what_,
                                                         meant.empty() ? "" : ", did you mean '" + meant + "'?")});
  }

  // Nothing: it says nothing, or is wrong.
  std::optional<std::string> argument_of(const CLI::Option& option, const std::string& name, const toml::node& node) {
    const Kind kind = kind_of(option);
    const bool list = kLists.contains(name);
    const auto value = value_of(node, kind, list);
    if (!value) {
      problems_.push_back({node.source().begin, fmt::format("{}: must be {}", name, wanted(kind, list))});
      return std::nullopt;
    }
    if (kind == Kind::kFlag) return *value == "true" ? std::optional("--" + name) : std::nullopt;
    if (value->empty()) {
      problems_.push_back({node.source().begin, name + ": is empty; leave the key out for the default"});
      return std::nullopt;
    }
    return "--" + name + "=" + *value;
  }

  // By itself, so that it is known where the fault is.
  bool judge(const std::string& argument, const std::string& name, const toml::source_position& at, Parts... scratch) {
    CLI::App one;
    one.set_help_flag();
    (scratch.add(one), ...);
    try {
      one.parse(std::vector<std::string>{argument});
    } catch (const CLI::RequiresError&) {  // of others in the table
    } catch (const CLI::ParseError& e) {
      std::string text = error_text(e.what());
      if (const std::string prefix = "--" + name + ": "; text.rfind(prefix, 0) == 0) text.erase(0, prefix.size());
      problems_.push_back({at, name + ": " + without_dashes(text)});
      return false;
    }
    return true;
  }

  const toml::table& table_;
  std::string what_;
  std::vector<std::string> own_;
  Problems& problems_;
};

class Reader {
 public:
  explicit Reader(const toml::table& root) : root_(root) {}

  [[nodiscard]] std::optional<GatewayConfig> read() {
    for (const auto& [key, node] : root_) {
      if (key == "process") {
        read_process(node);
      } else if (key != "listener") {
        const std::string meant = nearest_key(std::string(key.str()), {"process", "listener"});
        wrong(key.source().begin, fmt::format("unknown key '{}': write [process] or [[listener]] above the keys{}",
                                              key.str(), meant.empty() ? "" : ", did you mean '" + meant + "'?"));
      }
    }
    config_.service.process = process_options(config_.process, limits_);
    read_listeners();
    if (!problems_.empty()) return std::nullopt;
    complete(config_.service);
    return std::move(config_);
  }
  [[nodiscard]] Problems& problems() { return problems_; }

 private:
  void wrong(const toml::source_position& at, std::string text) { problems_.push_back({at, std::move(text)}); }

  void read_process(const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return wrong(node.source().begin, "process: must be a table: write [process] above its keys");
    Table<ProcessFlags, LimitFlags>(*table, "[process]", {}, problems_).read(config_.process, limits_);
  }

  void read_listeners() {
    const toml::node* node = root_.get("listener");
    if (node == nullptr) return wrong({1, 1}, "there is no [[listener]]: at least one is needed");
    const toml::array* tables = node->as_array();
    if (tables == nullptr || tables->empty() || !tables->is_homogeneous(toml::node_type::table))
      return wrong(node->source().begin, "listener: write [[listener]] above the keys of each");
    if (tables->size() > kMaxListeners)
      return wrong(node->source().begin, fmt::format("there are more than {} listeners", kMaxListeners));
    for (const toml::node& element : *tables) read_listener(*element.as_table());
  }

  void read_listener(const toml::table& table) {
    const std::size_t before = problems_.size();
    const std::string name = read_name(table);
    ListenerFlags flags;
    LimitFlags limits = limits_;
    Table<ListenerFlags, LimitFlags>(table, "[[listener]]", {"name"}, problems_).read(flags, limits);
    if (problems_.size() > before) return;
    try {
      auto settings = listener_settings(name, flags, limits, config_.process);
      const char* const key = settings.direction == gateway::Direction::kRdmaToTcp ? "rdma-listen" : "tcp-listen";
      check_address(settings, place_of(table, key));
      config_.service.listeners.push_back(std::move(settings));
    } catch (const SettingError& e) {
      const std::string key = e.option().empty() ? "" : e.option().substr(2);
      wrong(place_of(table, key), (key.empty() ? "" : key + ": ") + without_dashes(e.what()));
    }
  }

  std::string read_name(const toml::table& table) {
    const toml::node* node = table.get("name");
    if (node == nullptr) {
      wrong(table.source().begin, "name is missing: each [[listener]] needs one of its own");
      return {};
    }
    const auto at = node->source().begin;
    const auto* text = node->as_string();
    const std::string name = text != nullptr ? text->get() : "";
    const bool good = !name.empty() && name.size() <= kMaxNameLength && std::ranges::all_of(name, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
    if (!good)
      wrong(at, fmt::format("name: must be text of 1 to {} letters, digits, '-', '_' and '.'", kMaxNameLength));
    if (const auto [known, fresh] = names_.try_emplace(name, at.line); good && !fresh)
      wrong(at, fmt::format("name: '{}' is the name of another listener (line {})", name, known->second));
    return name;
  }

  void check_address(const gateway::ListenerSettings& settings, const toml::source_position& at) {
    const auto covers = [](const auto& a, const auto& b) {
      return a == b || (a.is_unspecified() && (a.is_v6() || b.is_v4()));
    };
    const auto& mine = settings.listen;
    for (const auto& [endpoint, line] : addresses_) {
      if (mine.port() == 0 || endpoint.port() != mine.port()) continue;
      if (covers(mine.address(), endpoint.address()) || covers(endpoint.address(), mine.address()))
        wrong(at, fmt::format("another listener has {} already (line {})", cm::to_string(endpoint), line));
    }
    addresses_.emplace_back(mine, at.line);
  }

  static toml::source_position place_of(const toml::table& table, const std::string& key) {
    const toml::node* node = table.get(key);
    return node != nullptr ? node->source().begin : table.source().begin;
  }

  const toml::table& root_;
  GatewayConfig config_;
  LimitFlags limits_;
  Problems problems_;
  std::map<std::string, toml::source_index> names_;  // with their lines, as the next
  std::vector<std::pair<boost::asio::ip::tcp::endpoint, toml::source_index>> addresses_;
};

std::string located(const std::string& file, const toml::source_position& at, const std::string& text) {
  return fmt::format("{}:{}:{}: {}", file, at.line, at.column, text);
}

std::string written(const CLI::Option& option) {
  const Kind kind = kind_of(option);
  if (kind == Kind::kFlag) return "true";
  std::string value = option_value(option);
  std::erase_if(value, [](char c) { return c == ' '; });
  return kind == Kind::kNumber ? value : '"' + value + '"';
}

void add_key(std::vector<ConfigKey>& keys, const CLI::Option& option) {
  keys.push_back({option.get_lnames().front(), written(option), without_dashes(option_text(option))});
}

template <class... Parts>
std::vector<ConfigKey> keys_of(std::vector<ConfigKey> keys, Parts... parts) {
  CLI::App app;
  app.set_help_flag();
  (parts.add(app), ...);
  for (const CLI::Option* option : shown_options(app)) add_key(keys, *option);
  return keys;
}

}  // namespace

std::vector<ConfigKey> process_keys() {
  return keys_of({}, ProcessFlags{}, LimitFlags{});
}

std::vector<ConfigKey> listener_keys() {
  return keys_of({{"name", "\"NAME\"",
                   fmt::format("Needed, and for one listener only: 1 to {} letters, digits, -, _ and period. Log "
                               "lines begin with it",
                               kMaxNameLength)}},
                 ListenerFlags{}, LimitFlags{});
}

ReadConfig read_gateway_config(const std::string& file) {
  ReadConfig out;
  std::ifstream in(file);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  std::error_code ec;
  if (!in || in.bad() || text.bad() || std::filesystem::is_directory(file, ec)) {
    out.errors.push_back(fmt::format("{}: cannot be read: {}", file, std::strerror(errno)));
    return out;
  }
  try {
    const toml::table root = toml::parse(text.str(), file);
    Reader reader(root);
    out.config = reader.read();
    std::ranges::stable_sort(reader.problems(), {}, [](const Problem& p) { return std::pair(p.at.line, p.at.column); });
    for (const Problem& p : reader.problems()) out.errors.push_back(located(file, p.at, p.text));
  } catch (const toml::parse_error& e) {
    out.errors.push_back(located(file, e.source().begin, std::string(e.description())));
  }
  return out;
}

}  // namespace iwarp::tools
