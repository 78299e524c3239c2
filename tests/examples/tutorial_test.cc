// The code of docs/TUTORIAL.md stands in examples/: each block of it begins with a line that names its file, and what
// follows is found there, line for line.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string read(const std::string& path) {
  std::ifstream in(std::string(IWARP_SOURCE) + "/" + path);
  EXPECT_TRUE(in.is_open()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Without what indents all lines alike.
std::string dedent(const std::string& text) {
  std::size_t least = std::string::npos;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const auto first = line.find_first_not_of(' '); first != std::string::npos) least = std::min(least, first);
  }
  if (least == std::string::npos) return text;
  std::string out;
  std::istringstream again(text);
  for (std::string line; std::getline(again, line);) out += (line.size() > least ? line.substr(least) : "") + "\n";
  return out;
}

// Whether consecutive lines of `file` are `block`, wherever both are indented.
bool stands_in(const std::string& file, const std::string& block) {
  std::vector<std::string> lines;
  std::istringstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const auto height = static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n'));
  const std::string wanted = dedent(block);
  for (std::size_t at = 0; at + height <= lines.size(); ++at) {
    std::string here;
    for (std::size_t i = 0; i < height; ++i) here += lines[at + i] + "\n";
    if (dedent(here) == wanted) return true;
  }
  return false;
}

struct Block {
  std::string file, code;
};

std::vector<Block> blocks(const std::string& markdown) {
  std::vector<Block> found;
  std::istringstream in(markdown);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!inside && line == "```cpp") {
      inside = true;
      found.emplace_back();
    } else if (inside && line == "```") {
      inside = false;
    } else if (inside && found.back().file.empty()) {
      found.back().file = line.rfind("// ", 0) == 0 ? line.substr(3) : "no file is named: " + line;
    } else if (inside) {
      found.back().code += line + "\n";
    }
  }
  return found;
}

TEST(Tutorial, EachBlockOfCodeStandsInItsExample) {
  const auto all = blocks(read("docs/TUTORIAL.md"));
  EXPECT_GE(all.size(), 8U);
  for (const Block& block : all) {
    EXPECT_FALSE(block.code.empty()) << block.file;
    EXPECT_TRUE(stands_in(read(block.file), block.code)) << block.file << " does not hold:\n" << block.code;
  }
}

TEST(Tutorial, TheCheckSeesADifference) {
  const std::string file = "void f() {\n  a();\n  b();\n}\n";
  EXPECT_TRUE(stands_in(file, "a();\nb();\n"));
  EXPECT_FALSE(stands_in(file, "a();\nc();\n"));
  EXPECT_FALSE(stands_in(file,
                         "a();\n"
                         "\n"
                         "b();\n"));
}

TEST(Tutorial, EchoFitsInSixtyLines) {
  const std::string echo = read("examples/echo.cc");
  EXPECT_LE(std::count(echo.begin(), echo.end(), '\n'), 60);
}

}  // namespace
