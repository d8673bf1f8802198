// Several sources as one.
#include "data/mixed_source.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace nmrf {
namespace {

// Samples whose name tells where they come from.
class NamedSource : public SampleSource {
 public:
  NamedSource(std::string name, std::optional<std::int64_t> size)
      : name_(std::move(name)), size_(size) {}
  std::optional<std::int64_t> size() const override { return size_; }
  Sample get(std::int64_t index, std::uint64_t draw_seed) const override {
    Sample sample;
    sample.name = describe(index) + "/" + std::to_string(draw_seed);
    return sample;
  }
  std::string describe(std::int64_t index) const override { return name_ + std::to_string(index); }

 private:
  std::string name_;
  std::optional<std::int64_t> size_;
};

std::shared_ptr<const SampleSource> named(const char* name, std::optional<std::int64_t> size) {
  return std::make_shared<NamedSource>(name, size);
}

TEST(MixedSource, PartsFollowEachOtherAsOftenAsAsked) {
  MixedSource mixed({{named("a", 2), 3}, {named("b", 1), 1}, {named("c", 3), 2}});
  ASSERT_EQ(mixed.size(), 2 * 3 + 1 + 3 * 2);
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < *mixed.size(); ++i) {
    names.push_back(mixed.describe(i));
    EXPECT_EQ(mixed.get(i, 40 + i).name, names.back() + "/" + std::to_string(40 + i))
        << "the seed is passed on";
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a0", "a1", "a0", "a1", "a0", "a1", "b0", "c0", "c1",
                                             "c2", "c0", "c1", "c2"}));
  test::error_of(ErrorKind::kFailure, [&] { mixed.get(13, 0); });
}

TEST(MixedSource, AnEndlessSourceStandsAlone) {
  MixedSource alone({{named("s", std::nullopt), 1}});
  EXPECT_FALSE(alone.size().has_value());
  EXPECT_EQ(alone.describe(1000000007), "s1000000007");
  auto message = test::error_of(ErrorKind::kUsage, [] {
    MixedSource({{named("a", 2), 1}, {named("s", std::nullopt), 1}});
  });
  EXPECT_NE(message.find("nmrf synth"), std::string::npos);
  test::error_of(ErrorKind::kUsage, [] { MixedSource({}); });
}

}  // namespace
}  // namespace nmrf
