#include "fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "nmrf/error.h"

// From the sanitizer's run time: called at every allocation and release.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             std::size_t),
                                                         void (*free_hook)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void*);

namespace nmrf::fuzz {
namespace {

constexpr double kSeconds = 1;
constexpr std::int64_t kBytes = 100'000'000;

std::atomic<std::int64_t> g_held{0}, g_most{0};

void on_malloc(const volatile void*, std::size_t size) {
  const std::int64_t held =
      g_held.fetch_add(static_cast<std::int64_t>(size)) + static_cast<std::int64_t>(size);
  if (held > g_most.load()) g_most.store(held);
}

void on_free(const volatile void* block) {
  if (block) g_held.fetch_sub(static_cast<std::int64_t>(__sanitizer_get_allocated_size(block)));
}

double processor_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

[[noreturn]] void broken_promise(const std::string& what) {
  std::fprintf(stderr, "broken promise: %s\n", what.c_str());
  std::abort();
}

void check_error(const Error& error) {
  const ErrorKind kind = error.kind();
  if (kind == ErrorKind::kFailure || kind == ErrorKind::kCancelled)
    broken_promise("an error of the wrong kind: " + std::string(error.what()));
  const std::string_view message = error.what();
  if (message.size() < 10 || message.size() > 4000)
    broken_promise("a message of " + std::to_string(message.size()) + " characters");
}

}  // namespace

const std::filesystem::path& as_file(Bytes input, std::size_t which) {
  static const int files[] = {::memfd_create("input", MFD_CLOEXEC),
                              ::memfd_create("input", MFD_CLOEXEC)};
  static const std::filesystem::path paths[] = {"/proc/self/fd/" + std::to_string(files[0]),
                                                "/proc/self/fd/" + std::to_string(files[1])};
  const int fd = files[which];
  const bool ok = ::ftruncate(fd, 0) == 0 &&
                  ::pwrite(fd, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size());
  if (!ok) broken_promise("the input cannot be written");
  return paths[which];
}

void parse(Bytes input, const std::function<void()>& parser) {
  static const int hooked = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  static_cast<void>(hooked);
  const std::int64_t held = g_held.load();
  g_most.store(held);
  const double start = processor_seconds();
  try {
    parser();
  } catch (const Error& error) {
    check_error(error);
  }
  const double kilobytes = static_cast<double>(input.size() / 1024 + 1);
  const double seconds = processor_seconds() - start;
  if (seconds > kSeconds * kilobytes)
    broken_promise("an input of " + std::to_string(input.size()) + " bytes took " +
                   std::to_string(seconds) + " s");
  const auto most = static_cast<double>(g_most.load() - held);
  if (most > static_cast<double>(kBytes) * kilobytes)
    broken_promise("an input of " + std::to_string(input.size()) + " bytes took " +
                   std::to_string(most / 1e6) + " MB");
}

}  // namespace nmrf::fuzz
