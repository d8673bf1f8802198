#include "weights/pickle.h"

#include "support/support.h"
#include "weights/pth_builder.h"

namespace nmrf {
namespace {

using pickle::Kind;
using test::expect_contains;
using test::PickleBuilder;

pickle::Tree load(const std::string& bytes) {
  const FileBytes file = test::file_of(bytes);
  return pickle::read(file.bytes, file.name);
}

std::string refusal(const std::string& bytes) {
  return test::error_of(ErrorKind::kModel, [&] { load(bytes); });
}

std::string operator""_b(const char* text, std::size_t size) { return {text, size}; }

// One value, wrapped in a protocol header and STOP.
pickle::Tree value(const std::string& opcodes, int protocol = 2) {
  return load(PickleBuilder().proto(protocol).raw(opcodes).raw(".").bytes);
}

TEST(Pickle, Numbers) {
  auto integer = [](const std::string& opcodes) {
    auto tree = value(opcodes);
    EXPECT_TRUE(tree.root->is(Kind::kInt));
    return tree.root->integer;
  };
  EXPECT_EQ(integer("K\xff"), 255);
  EXPECT_EQ(integer("M\xff\xfe"), 0xfeff);
  EXPECT_EQ(integer("J\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(integer("\x8a\0"_b), 0);
  EXPECT_EQ(integer("\x8a\1\xff"), -1);
  EXPECT_EQ(integer("\x8a\2\xff\0"_b), 255);
  EXPECT_EQ(integer("\x8a\x8\0\0\0\0\0\0\0\x80"_b), INT64_MIN);
  EXPECT_EQ(integer("\x8b\2\0\0\0\0\1"_b), 256);
  EXPECT_EQ(integer("I-12\n"), -12);
  EXPECT_EQ(integer("L77L\n"), 77);
  EXPECT_TRUE(value("\x8a\x9" + std::string(9, '\1')).root->is(Kind::kBigInt));
  EXPECT_TRUE(value("L99999999999999999999L\n").root->is(Kind::kBigInt));
  EXPECT_EQ(value("G\x3f\xf8\0\0\0\0\0\0"_b).root->real, 1.5);
  EXPECT_EQ(value("F-2.5e3\n").root->real, -2500.0);
  EXPECT_TRUE(value("\x88").root->is(Kind::kBool));
  EXPECT_EQ(value("\x88").root->integer, 1);
  EXPECT_EQ(value("I00\n").root->kind, Kind::kBool);
  EXPECT_TRUE(value("N").root->is(Kind::kNone));
  expect_contains(refusal("\x80\2I1x\n."), "'1x'");
  expect_contains(refusal("\x80\2Fone\n."), "'one'");
  expect_contains(refusal("\x80\2\x8b\xff\xff\xff\xff."), "negative length");
}

TEST(Pickle, StringsAndBytes) {
  const std::vector<std::string> strings = {
      "X\3\0\0\0abc"_b, "T\3\0\0\0abc"_b, "U\3abc", "\x8c\3abc", "\x8d\3\0\0\0\0\0\0\0abc"_b,
      "Vabc\n"};
  for (const std::string& opcodes : strings) {
    auto tree = value(opcodes, 5);
    EXPECT_TRUE(tree.root->is(Kind::kString));
    EXPECT_EQ(tree.root->text, "abc");
  }
  const std::vector<std::string> bytes = {"B\2\0\0\0\0\xff"_b, "C\2\0\xff"_b,
                                          "\x8e\2\0\0\0\0\0\0\0\0\xff"_b,
                                          "\x96\2\0\0\0\0\0\0\0\0\xff"_b};
  for (const std::string& opcodes : bytes) {
    auto tree = value(opcodes, 5);
    EXPECT_TRUE(tree.root->is(Kind::kBytes));
    EXPECT_EQ(tree.root->text, "\0\xff"_b);
  }
}

TEST(Pickle, Containers) {
  auto tree = value("}(X\1\0\0\0aK\1X\1\0\0\0bK\2X\1\0\0\0aK\3u"_b);
  ASSERT_TRUE(tree.root->is(Kind::kDict));
  ASSERT_EQ(tree.root->items.size(), 6u);
  EXPECT_EQ(tree.root->find("a")->integer, 3) << "the last of equal keys";
  EXPECT_EQ(tree.root->find("b")->integer, 2);
  EXPECT_EQ(tree.root->find("c"), nullptr);

  EXPECT_EQ(value("(K\1K\2d").root->items.size(), 2u);
  EXPECT_EQ(value("](K\1K\2eK\3a").root->items.size(), 3u);
  EXPECT_EQ(value("(K\1K\2l").root->items.size(), 2u);
  EXPECT_EQ(value("(K\1K\2K\3K\4t").root->items[3]->integer, 4);
  EXPECT_EQ(value("K\1K\2K\3\x87").root->items[0]->integer, 1);
  EXPECT_EQ(value("K\1K\2\x86").root->items[1]->integer, 2);
  EXPECT_EQ(value("\x8f(K\1K\2\x90", 4).root->items.size(), 2u);
  EXPECT_EQ(value("(K\1\x91", 4).root->kind, Kind::kSet);
  EXPECT_EQ(value("K\1(K\2K\3"
                  "10K\5")
                .root->integer,
            5)
      << "POP_MARK and POP";
  EXPECT_EQ(value("K\5(0").root->integer, 5) << "POP takes a mark";
  EXPECT_EQ(value("K\1"
                  "2\x86")
                .root->items[1]
                ->integer,
            1)
      << "DUP";
}

TEST(Pickle, MemoAndProtocol4) {
  EXPECT_EQ(value("K\7q\5"
                  "0h\5")
                .root->integer,
            7);
  EXPECT_EQ(value("K\7r\1\2\3\4"
                  "0j\1\2\3\4")
                .root->integer,
            7);
  EXPECT_EQ(value("K\7p12\n0g12\n").root->integer, 7);
  EXPECT_EQ(value("\x95\4\0\0\0\0\0\0\0K\7\x94"
                  "0h\0"_b,
                  4)
                .root->integer,
            7);
  auto tree = value("\x8c\13collections\x8c\13OrderedDict\x93)R", 4);
  EXPECT_TRUE(tree.root->is(Kind::kDict));
  expect_contains(refusal("\x80\2h\1."), "never stored");
  expect_contains(refusal("\x80\2Npx\n."), "'x' is not a number");
}

TEST(Pickle, SharedAndCyclicValuesAreInert) {
  // A list that contains itself.
  auto tree = value("]q\0h\0a"_b);
  ASSERT_EQ(tree.root->items.size(), 1u);
  EXPECT_EQ(tree.root->items[0], tree.root);
  // A billion laughs: each list holds the one before twice. Shared, so it takes no memory.
  std::string laughs = "]q\0"_b;
  for (int i = 0; i < 200; ++i)
    laughs += "0](h"_b + static_cast<char>(i) + "h" + static_cast<char>(i) + "eq" +
              static_cast<char>(i + 1);
  EXPECT_EQ(value(laughs).root->items.size(), 2u);
  // Deep nesting needs no recursion to build or to free.
  EXPECT_TRUE(value(")" + std::string(500'000, '\x85')).root->is(Kind::kTuple));
}

TEST(Pickle, ForeignNamesAreRefused) {
  struct Case {
    std::string opcodes, name;
  };
  const std::vector<Case> cases = {
      {"cos\nsystem\n(X\7\0\0\0echo hitR"_b, "'os.system'"},
      {"cposix\nsystem\nX\2\0\0\0id\x85R"_b, "'posix.system'"},
      {"\x8c\2os\x8c\6system\x93\x8c\2id\x85R", "'os.system'"},
      {"(ios\nsystem\n", "'os.system'"},
      {"c__builtin__\neval\n(X\1\0\0\0"
       "1tR"_b,
       "'__builtin__.eval'"},
      {"cbuiltins\ngetattr\n", "'builtins.getattr'"},
      {"cargparse\nNamespace\n)\x81}b", "'argparse.Namespace'"},
      {"cnumpy.core.multiarray\nscalar\n", "'numpy.core.multiarray.scalar'"},
      {"ctorch\nload\n", "'torch.load'"},
      {"ctorch\nFloatStorage.__class__\n", "'torch.FloatStorage.__class__'"},
      {"ccollections\nOrderedDict.fromkeys\n", "'collections.OrderedDict.fromkeys'"},
      // In the list, but neither callable nor to be instantiated.
      {"ctorch\nFloatStorage\n)R", "'torch.FloatStorage'"},
      {"ccollections\nOrderedDict\n)\x81", "'collections.OrderedDict'"},
      {"ccollections\nOrderedDict\n)}\x92", "'collections.OrderedDict'"},
      {"(ctorch\nSize\no", "'torch.Size'"}};
  for (const Case& c : cases) {
    const std::string message = refusal(PickleBuilder().proto(4).raw(c.opcodes).raw(".").bytes);
    expect_contains(message, "refuses to load " + c.name);
    expect_contains(message, "made.pth");
    expect_contains(message, "state_dict()");
  }
  expect_contains(refusal("\x80\2c\x1b[2Jx\ny\n."), "'\\x1b[2Jx.y'");
}

TEST(Pickle, BrokenPicklesAreRefused) {
  auto broken = [](const std::string& opcodes) {
    return refusal(PickleBuilder().proto().raw(opcodes).raw(".").bytes);
  };
  expect_contains(refusal(""), "ends");
  expect_contains(refusal("\x80\6N."), "protocol 6");
  expect_contains(refusal("\x80\2N"), "ends");
  expect_contains(refusal("\x80\2cos"), "middle of a line");
  expect_contains(broken(""), "unfinished");
  expect_contains(broken("NN"), "unfinished");
  expect_contains(broken("N("), "unfinished");
  expect_contains(broken("0"), "missing from its stack");
  expect_contains(broken("K\1(\x85t"), "missing from its stack");
  expect_contains(broken("t"), "mark is missing");
  expect_contains(broken("}(Nu"), "key without a value");
  expect_contains(broken("(Nd"), "key without a value");
  expect_contains(broken("](NNu"), "adds to a list as if it were a dict");
  expect_contains(broken("}Na"), "adds to a dict as if it were a list");
  expect_contains(broken("N)R"), "calls None");
  expect_contains(broken("ctorch\nSize\nNR"), "with None");
  expect_contains(broken("ccollections\nOrderedDict\nN\x85R"), "OrderedDict");
  expect_contains(broken("NNb"), "sets attributes of None");
  expect_contains(broken("NQ"), "storage is described by None");
  expect_contains(broken("NN\x93"), "not made of strings");
  expect_contains(broken("P1\n"), "opcode 0x50");
  expect_contains(broken("\x82\1"), "opcode 0x82");
  expect_contains(broken("\x97"), "opcode 0x97");
  expect_contains(broken("\x95\xff\xff\xff\xff\xff\xff\xff\xff"), "frame");
  expect_contains(broken("X\xff\xff\xff\xff"), "4294967295 bytes expected");
  expect_contains(broken("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "ends");
  expect_contains(broken("\x8b\xff\xff\xff\x7f"), "ends");
}

TEST(Pickle, Limits) {
  expect_contains(refusal("\x80\2" + std::string(pickle::kMaxDepth + 1, '(')), "nested deeper");
  expect_contains(refusal("\x80\2" + std::string(pickle::kMaxValues + 1, 'N')), "more than");
  std::string long_call =
      "\x80\2"
      "ctorch\nSize\n(" +
      std::string(17, 'N') + "tR.";
  expect_contains(refusal(long_call), "17 arguments");
  expect_contains(refusal(std::string(pickle::kMaxBytes + 1, 'N')), "more than the");
}

}  // namespace
}  // namespace nmrf
