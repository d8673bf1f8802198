// The documents keep up with the program: commands, options, settings and links that they name
// exist.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "cli/run.h"

namespace nmrf::test {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = NMRF_SOURCE_DIR;

std::vector<fs::path> documents() {
  std::vector<fs::path> found{kSource / "README.md", kSource / "models/README.md",
                              kSource / "examples/pair/README.md"};
  for (const auto& entry : fs::directory_iterator(kSource / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Words of a command line; quotes hold blanks, a comment ends it.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool any = false;
  for (char c : line + " ") {
    if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ') {
      if (!word.empty() || any) words.push_back(word);
      word.clear();
      any = false;
    } else if (c == '#' && word.empty()) {
      break;
    } else {
      word += c;
    }
  }
  return words;
}

struct Line {
  std::string place;  // file:line
  std::vector<std::string> words;
};

// Every `nmrf COMMAND ...` of an indented or fenced block, continuations joined.
std::vector<Line> command_lines() {
  std::vector<Line> found;
  for (const auto& path : documents()) {
    const auto lines = lines_of(path);
    bool fenced = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].starts_with("```")) fenced = !fenced;
      std::string text = lines[i];
      const bool block = fenced || text.starts_with("    ");
      text.erase(0, text.find_first_not_of(' ') == std::string::npos ? text.size()
                                                                     : text.find_first_not_of(' '));
      if (!block || !text.starts_with("nmrf ")) continue;
      const std::string place = path.filename().string() + ":" + std::to_string(i + 1);
      while (text.ends_with('\\') && i + 1 < lines.size()) {
        text.pop_back();
        text += lines[++i];
      }
      // Two examples in one line of the command's page are set apart by blanks.
      found.push_back({place, words_of(text)});
    }
  }
  return found;
}

// All words that look like options in a help text.
const std::set<std::string>& options_of(const std::string& command) {
  static std::map<std::string, std::set<std::string>> known;
  auto [entry, fresh] = known.try_emplace(command);
  if (fresh) {
    const std::string help = nmrf({command, "--help"}).out;
    static const std::regex option("(^|[ ,\\[])(--?[A-Za-z][A-Za-z-]*)");
    for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at)
      entry->second.insert((*at)[2]);
  }
  return entry->second;
}

// Keys that --set takes.
std::set<std::string> settings_of(const std::string& command) {
  std::set<std::string> keys;
  std::istringstream lines(command == "train" || command == "synth"
                               ? nmrf({command, "--list-settings"}).out
                               : nmrf({"info", "--preset", "fast"}).out);
  static const std::regex entry("^ *([A-Za-z0-9_.]+) += .* # .*");
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, entry)) keys.insert(match[1].str());
  return keys;
}

TEST(Docs, CommandsAndOptionsExist) {
  const std::string help = nmrf({"--help"}).out;
  std::size_t checked = 0;
  for (const auto& [place, words] : command_lines()) {
    ASSERT_GE(words.size(), 1u);
    if (words.size() < 2 || words[1].starts_with("--") || words[1] == "COMMAND") continue;
    EXPECT_TRUE(contains(help, "\n  " + words[1] + " ")) << place << ": nmrf " << words[1];
    const auto& options = options_of(words[1]);
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i] == "nmrf") break;  // a second example in the same line
      if (words[i].size() < 2 || words[i][0] != '-' ||
          !std::isalpha(words[i][words[i][1] == '-' ? 2 : 1]))
        continue;
      ++checked;
      const std::string name = words[i].substr(0, words[i].find('='));
      EXPECT_TRUE(options.contains(name)) << place << ": nmrf " << words[1] << " " << name;
    }
  }
  EXPECT_GT(checked, 100u);
}

TEST(Docs, SettingsExist) {
  std::map<std::string, std::set<std::string>> known;
  std::size_t checked = 0;
  for (const auto& [place, words] : command_lines())
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i] != "--set" && words[i] != "-s") continue;
      for (std::size_t j = i + 1; j < words.size() && words[j][0] != '-'; ++j) {
        const std::string key = words[j].substr(0, words[j].find('='));
        if (key == words[j] || key == "KEY") break;
        auto [entry, fresh] =
            known.try_emplace(words[1] == "train" || words[1] == "synth" ? words[1] : "model");
        if (fresh) entry->second = settings_of(words[1]);
        ++checked;
        EXPECT_TRUE(entry->second.contains(key)) << place << ": --set " << words[j];
      }
    }
  EXPECT_GT(checked, 10u);
}

TEST(Docs, ConfigsAreAccepted) {
  std::size_t checked = 0;
  for (const auto& entry : fs::directory_iterator(kSource / "configs")) {
    if (entry.path().extension() != ".toml") continue;
    ++checked;
    const Outcome run = nmrf({"train", "--config", entry.path(), "--show-config"});
    EXPECT_EQ(run.code, 0) << entry.path() << ": " << run.err;
  }
  EXPECT_GT(checked, 5u);
}

// The help texts in docs/cli.md and the tables of docs/settings.md.
TEST(Docs, ReferencesAreThoseOfThePrograms) {
  const TempFolder folder;
  const std::string output = folder / "output.txt";
  const std::string command = "python3 '" + (kSource / "scripts/reference").string() + "' '" +
                              fs::path(NMRF_COMMAND).parent_path().string() + "' --check > '" +
                              output + "' 2>&1";
  const int status = std::system(command.c_str());
  std::string text;
  for (const auto& line : lines_of(output)) text += line + "\n";
  EXPECT_EQ(status, 0) << text;
}

TEST(Docs, LinksLeadSomewhere) {
  static const std::regex link("\\]\\(([^)# ]+)(#[^)]*)?\\)");
  auto all = documents();
  for (const char* name : {"HACKING.md", "CONTRIBUTING.md", "CHANGELOG.md"})
    all.push_back(kSource / name);
  for (const auto& entry : fs::directory_iterator(kSource / "docs/notebook"))
    all.push_back(entry.path());
  std::size_t checked = 0;
  for (const auto& path : all)
    for (const auto& line : lines_of(path))
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        const std::string target = (*at)[1];
        if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
        ++checked;
        EXPECT_TRUE(fs::exists(path.parent_path() / target))
            << path.filename().string() << " links to " << target;
      }
  EXPECT_GT(checked, 30u);
}

}  // namespace
}  // namespace nmrf::test
