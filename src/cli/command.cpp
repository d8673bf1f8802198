#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "core/check.h"
#include "core/closest.h"
#include "core/cores.h"
#include "nmrf/log.h"

namespace nmrf::cli {
namespace {

volatile std::sig_atomic_t g_signals = 0;

void on_signal(int) {
  if (g_signals) _exit(kExitInterrupted);
  g_signals = 1;
}

// What to say of the first long option that the command does not have; empty when all are known.
std::string unknown_option(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], name = word.substr(0, word.find('='));
    if (word == "--") break;
    if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    return fmt::format("{}: unknown option {}; did you mean {}? {} --help lists all options",
                       app.get_name(), name, closest(name, known), app.get_name());
  }
  return {};
}

}  // namespace

bool terminal_stderr() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) && !(no_color && *no_color);
}

void CommonOptions::add_to(CLI::App& app) {
  app.add_flag("-q,--quiet", quiet, "Print errors only");
  app.add_flag("-v,--verbose", verbose, "Print details");
  app.add_option("-j,--threads", threads, "Threads (0: one per core)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void CommonOptions::apply() const {
  const bool colour = terminal_stderr();
  set_log_sink([quiet = quiet, verbose = verbose, colour](LogLevel level, const std::string& said) {
    if (quiet || (level == LogLevel::kDebug && !verbose)) return;
    const std::string text = in_options(said);
    if (level == LogLevel::kWarning)
      std::fprintf(stderr, colour ? "\033[33mwarning:\033[0m %s\n" : "warning: %s\n", text.c_str());
    else
      std::fprintf(stderr, "%s\n", text.c_str());
  });
}

int CommonOptions::thread_count() const {
  if (threads > 0) return threads;
  if (const char* named = std::getenv("OMP_NUM_THREADS"))
    if (const int count = std::atoi(named); count > 0) return std::min(count, 1024);
  return usable_cores();
}

namespace {

// For the shell completions, a line per name of an option: name, what it takes (nothing for a flag;
// "a|b" for one of these; else the type), description.
void list_options(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && option->get_lnames().empty()) continue;
    std::string takes = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
    if (const auto open = takes.find(":{"); open != std::string::npos) {
      takes = takes.substr(open + 2, takes.find('}') - open - 2);
      std::replace(takes.begin(), takes.end(), ',', '|');
    } else {
      takes = takes.substr(0, takes.find_first_of(":|"));
    }
    for (const std::string& name : option->get_lnames())
      print(fmt::format("--{}\t{}\t{}", name, takes, option->get_description()));
    for (const std::string& name : option->get_snames())
      print(fmt::format("-{}\t{}\t{}", name, takes, option->get_description()));
  }
}

}  // namespace

int parse(CLI::App& app, int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list-options") == 0) {
    list_options(app);
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    if (const std::string unknown = help ? "" : unknown_option(app, argc, argv); !unknown.empty()) {
      std::fprintf(stderr, "%s\n", unknown.c_str());
      return 2;
    }
    app.exit(error, std::cout, std::cerr);
    return help ? 0 : 2;
  }
  return -1;
}

CLI::Option* add_scale(CLI::App& app, std::optional<double>& scale, const std::string& text) {
  auto read = [&scale](const std::string& given) {
    scale.reset();
    if (given == "auto") return;
    double factor = 0;
    if (!CLI::detail::lexical_cast(given, factor) || !(factor >= 0.02 && factor <= 16))
      throw CLI::ValidationError("--scale",
                                 given + " is neither a factor from 0.02 to 16 nor auto");
    scale = factor;
  };
  return app.add_option_function<std::string>("--scale", read, text)
      ->type_name("FACTOR|auto")
      ->default_str("auto");
}

CLI::Option* add_max_disp(CLI::App& app, std::optional<int>& max_disp) {
  auto read = [&max_disp](int given) {
    max_disp.reset();
    if (given > 0) max_disp = given;
  };
  return app
      .add_option_function<int>("--max-disp", read,
                                "Largest disparity to search, pixels (0: the model's default)")
      ->check(CLI::Range(0, 16384));
}

CLI::Option* add_rectify(CLI::App& app, std::string& rectify) {
  return app
      .add_option("--rectify", rectify,
                  "small: correct small vertical misalignment; off: match the images as they are")
      ->check(CLI::IsMember({"small", "off"}))
      ->capture_default_str();
}

CLI::Option* add_precision(CLI::App& app, Precision& precision) {
  auto read = [&precision](const std::string& name) {
    precision = name == "int8"      ? Precision::kInt8
                : name == "float32" ? Precision::kFloat32
                                    : Precision::kAuto;
  };
  return app
      .add_option_function<std::string>(
          "--precision", read,
          "Arithmetic of message passing and convolutions: "
          "float32, int8, or auto: int8 where faster, for models marked for it [auto]")
      ->check(CLI::IsMember({"auto", "float32", "int8"}));
}

CLI::Option* add_device(CLI::App& app, std::string& device) {
  const auto known = [](const std::string& wish) -> std::string {
    const bool numbered = wish.starts_with("cuda:") && wish.size() > 5 && wish.size() < 9 &&
                          wish.find_first_not_of("0123456789", 5) == std::string::npos;
    if (numbered || wish == "auto" || wish == "cpu" || wish == "cuda") return {};
    return "device '" + wish + "': expected auto, cpu, cuda or cuda:N";
  };
  return app.add_option("--device", device, "auto, cpu, cuda or cuda:N")
      ->check(CLI::Validator(known, ""))
      ->capture_default_str();
}

void add_pair_input(CLI::App& app, PairInput& input) {
  app.add_option("LEFT", input.left,
                 "Left image, folder, 'pattern*' or video; both views with --layout");
  app.add_option("RIGHT", input.right, "Same for the right view");
  app.add_option("--list", input.list, "Text file with one pair per line: left right");
  app.add_option("--root", input.root, "Base folder of the paths in the list");
  auto set = [&input](Layout layout) {
    check(input.layout == Layout::kByName || input.layout == layout, ErrorKind::kUsage,
          "--layout and --side-by-side contradict each other");
    input.layout = layout;
  };
  static const std::vector<std::pair<std::string, Layout>> kLayouts{
      {"side-by-side", Layout::kSideBySide},
      {"crossed", Layout::kCrossed},
      {"top-bottom", Layout::kTopBottom},
      {"bottom-top", Layout::kBottomTop},
      {"mpo", Layout::kMpo}};
  std::vector<std::string> names;
  for (const auto& entry : kLayouts) names.push_back(entry.first);
  app.add_option_function<std::string>(
         "--layout",
         [set](const std::string& name) {
           for (const auto& [known, layout] : kLayouts)
             if (name == known) set(layout);
         },
         "LEFT holds both views. crossed: side by side, right view first; bottom-top: right view "
         "on top. .mpo and .jps files need no --layout")
      ->check(CLI::IsMember(names));
  app.add_flag_callback(
      "--side-by-side", [set] { set(Layout::kSideBySide); }, "Same as --layout side-by-side");
  app.add_flag("--upright", input.upright, "Rotate photos according to their EXIF orientation");
}

std::string in_options(std::string message) {
  static const std::regex words(
      R"((^|[^\w.:-])(?:Match(?:er)?Options::)?(max_disp|min_disp|full_size)\b|(?:Match(?:er)?Options|PairInput)::(\w+))");
  std::string result;
  auto from = message.cbegin();
  for (std::sregex_iterator it(message.begin(), message.end(), words), end; it != end; ++it) {
    std::string option = (*it)[2].matched ? it->str(2) : it->str(3);
    std::replace(option.begin(), option.end(), '_', '-');
    result.append(from, (*it)[0].first);
    result += it->str(1) + "--" + option;
    from = (*it)[0].second;
  }
  return result.append(from, message.cend());
}

ProgressLine::ProgressLine(bool enabled) : enabled_(enabled && isatty(STDERR_FILENO)) {}
ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!enabled_) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

ImageSize parse_size(const std::string& text, int least) {
  constexpr int kMost = 100000;
  ImageSize size;
  char more = 0;
  const bool read = std::sscanf(text.c_str(), "%dx%d%c", &size.width, &size.height, &more) == 2;
  check(read && std::min(size.width, size.height) >= least &&
            std::max(size.width, size.height) <= kMost,
        ErrorKind::kUsage, "--size {}: expected WIDTHxHEIGHT, at least {}x{}", text, least, least);
  return size;
}

void watch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return g_signals != 0; }

void print(const std::string& text) {
  const bool ok = std::fputs(text.c_str(), stdout) >= 0 && std::fputc('\n', stdout) != EOF &&
                  std::fflush(stdout) == 0;
  check(ok, ErrorKind::kFailure, "writing to standard output failed: {}", std::strerror(errno));
}

void print_json(const nlohmann::json& object) {
  print(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace nmrf::cli
