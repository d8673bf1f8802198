#include "core/fields.h"

#include "support/support.h"

namespace nmrf {
namespace {

enum class Shape { kRound, kFlat };

struct Sample {
  int count = 3;
  double rate = 0.5;
  bool on = false;
  std::string name = "a";
  std::vector<double> weights = {1, 2};
  Shape shape = Shape::kRound;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit("count", self.count, "how many");
    visit("deep.rate", self.rate, "per step");
    visit("deep.on", self.on, "switch");
    visit("name", self.name, "label");
    visit("deep.weights", self.weights, "list");
    visit("shape", self.shape, "form");
  }
};

}  // namespace

template <>
struct EnumNames<Shape> {
  static constexpr std::array<std::pair<Shape, const char*>, 2> values{
      {{Shape::kRound, "round"}, {Shape::kFlat, "flat"}}};
};

namespace {

TEST(Fields, JsonRoundTripKeepsEveryType) {
  Sample a;
  a.count = 7;
  a.rate = 0.1;
  a.on = true;
  a.name = "x y";
  a.weights = {3.5};
  a.shape = Shape::kFlat;
  Sample b;
  from_json_object(b, nlohmann::json::parse(to_json_object(a).dump()), "test");
  EXPECT_EQ(to_json_object(a), to_json_object(b));
  EXPECT_EQ(b.rate, 0.1);
  EXPECT_EQ(b.shape, Shape::kFlat);
}

TEST(Fields, SetFromCommandLine) {
  Sample a;
  set_field(a, "deep.rate=1e-4");
  set_field(a, "shape=flat");
  set_field(a, "name=plain words");
  set_field(a, "deep.weights=[1, 2.5]");
  EXPECT_EQ(a.rate, 1e-4);
  EXPECT_EQ(a.shape, Shape::kFlat);
  EXPECT_EQ(a.name, "plain words");
  EXPECT_EQ(a.weights, (std::vector<double>{1, 2.5}));
}

TEST(Fields, MistakesAreNamed) {
  Sample a;
  auto message = test::error_of(ErrorKind::kUsage, [&] { set_field(a, "deep.rat=1"); });
  EXPECT_NE(message.find("Did you mean 'deep.rate'"), std::string::npos) << message;
  message = test::error_of(ErrorKind::kUsage, [&] { set_field(a, "shape=square"); });
  EXPECT_NE(message.find("round, flat"), std::string::npos) << message;
  test::error_of(ErrorKind::kUsage, [&] { set_field(a, "count=1.5"); });
  test::error_of(ErrorKind::kUsage, [&] { set_field(a, "count=99999999999"); });
  test::error_of(ErrorKind::kUsage, [&] { set_field(a, "count"); });
  test::error_of(ErrorKind::kUsage, [&] { set_field(a, "deep.on=1"); });
}

}  // namespace
}  // namespace nmrf
