#include "io/toml.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/support.h"

namespace nmrf {
namespace {

TEST(Toml, RoundTrip) {
  test::TempFolder folder;
  const nlohmann::json settings = {{"count", 3},
                                   {"on", true},
                                   {"name", "a \"b\""},
                                   {"deep", {{"rate", 1e-5}, {"weights", {0.25, 4.0}}}}};
  write_file(folder / "s.toml", to_toml(settings));
  EXPECT_EQ(read_toml((folder / "s.toml").string()), settings);
}

TEST(Toml, MistakesNameTheLine) {
  test::TempFolder folder;
  write_file(folder / "bad.toml", "a = 1\nb = = 2\n");
  auto message =
      test::error_of(ErrorKind::kInput, [&] { read_toml((folder / "bad.toml").string()); });
  EXPECT_NE(message.find("line 2"), std::string::npos) << message;
  write_file(folder / "date.toml", "when = 2020-01-01\n");
  test::error_of(ErrorKind::kInput, [&] { read_toml((folder / "date.toml").string()); });
}

}  // namespace
}  // namespace nmrf
