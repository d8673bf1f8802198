// Damaged weight files: every prefix, and thousands of seeded mutations. Each must be read or be
// refused with an Error of kind kModel; the sanitizers watch for anything else.
#include <numeric>
#include <random>

#include "support/support.h"
#include "weights/pickle.h"
#include "weights/pth.h"
#include "weights/pth_builder.h"
#include "weights/safetensors.h"

namespace nmrf {
namespace {

using test::MadeTensor;

// Reads the file and touches every byte of every tensor. True when it was accepted.
bool survives(const std::string& bytes) {
  try {
    const TensorFile file = read_tensor_file(test::file_of(bytes));
    std::uint64_t sum = 0;
    for (const StoredTensor& tensor : file.tensors) {
      EXPECT_EQ(bytes_of(tensor.dtype, tensor.shape), tensor.data.size());
      sum = std::accumulate(tensor.data.begin(), tensor.data.end(), sum);
      if (is_floating(tensor.dtype)) sum += to_floats(tensor).size();
    }
    volatile std::uint64_t kept = sum;
    (void)kept;
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kModel) << error.what();
    EXPECT_NE(std::string(error.what()).find("made.pth"), std::string::npos) << error.what();
    return false;
  }
}

const std::vector<MadeTensor> kTensors = {
    {.name = "a.weight"},
    {.name = "a.transposed", .shape = {3, 2}, .strides = {1, 3}},
    {.name = "b.part", .shape = {2}, .strides = {1}, .offset = 3, .parameter = true},
    {.name = "index",
     .shape = {4},
     .strides = {1},
     .storage = "LongStorage",
     .key = "1",
     .storage_elements = 4}};

std::string small_pickle() { return test::state_dict_pickle(kTensors, "model"); }

std::vector<std::string> small_storages() {
  return {test::floats({0, 1, 2, 3, 4, 5}), std::string(32, '\5')};
}

std::string small_pth() { return test::make_pth(small_pickle(), small_storages()); }

std::string small_safetensors() {
  const std::string header =
      R"({"__metadata__":{"options":"{}"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"U8","shape":[],"data_offsets":[24,25]},)"
      R"("c":{"dtype":"F16","shape":[0,2],"data_offsets":[25,25]}}  )";
  return test::le<std::uint64_t>(header.size()) + header + std::string(25, '\7');
}

// Flips bits, overwrites, inserts, removes, repeats and swaps pieces; a few at a time.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string operator()(std::string bytes) {
    const std::size_t count = 1 + below(4);
    for (std::size_t i = 0; i < count && !bytes.empty(); ++i) once(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  void once(std::string& bytes) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = 1 + below(std::min<std::size_t>(bytes.size() - at, 9));
    static constexpr unsigned char kTelling[] = {0, 1, 0x7f, 0x80, 0xff, '(', 't', 'R', 'u', '.'};
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes[at] = static_cast<char>(kTelling[below(sizeof kTelling)]);
        break;
      case 3:
        bytes.replace(at, length, std::string(length, below(2) ? '\xff' : '\0'));
        break;
      case 4:
        bytes.erase(at, length);
        break;
      case 5:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
        break;
      default:
        bytes.replace(at, length, bytes.substr(below(bytes.size()), length));
    }
  }

  std::mt19937 random_;
};

TEST(DamagedWeights, EveryPrefix) {
  for (const std::string& whole : {small_pth(), small_safetensors()}) {
    ASSERT_TRUE(survives(whole));
    for (std::size_t length = 0; length < whole.size(); ++length)
      EXPECT_FALSE(survives(whole.substr(0, length))) << "cut to " << length << " bytes";
  }
}

// The archive around the cut pickle is sound, so that the interpreter itself meets the end.
TEST(DamagedWeights, EveryPrefixOfThePickle) {
  const std::string whole = small_pickle();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(survives(test::make_pth(whole.substr(0, length), small_storages())));
}

TEST(DamagedWeights, EverySingleByte) {
  for (const std::string& whole : {small_pth(), small_safetensors()})
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (char value : {'\0', '\x7f', '\xff', static_cast<char>(whole[at] ^ 1)}) {
        std::string bytes = whole;
        bytes[at] = value;
        survives(bytes);
      }
}

TEST(DamagedWeights, MutatedFiles) {
  Mutator mutate(1);
  std::size_t accepted = 0;
  for (const std::string& whole : {small_pth(), small_safetensors()})
    for (int i = 0; i < 5000; ++i) accepted += survives(mutate(whole));
  EXPECT_GT(accepted, 0u) << "some mutations only touch data or padding";
}

TEST(DamagedWeights, MutatedPicklesInSoundArchives) {
  Mutator mutate(2);
  const std::string whole = small_pickle();
  std::size_t accepted = 0;
  for (int i = 0; i < 10'000; ++i)
    accepted += survives(test::make_pth(mutate(whole), small_storages()));
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 10'000u);
}

TEST(DamagedWeights, MutatedHeadersOfTheRightLength) {
  Mutator mutate(3);
  const std::string whole = small_safetensors().substr(8);
  const std::string header = whole.substr(0, whole.size() - 25);
  for (int i = 0; i < 5000; ++i) {
    const std::string changed = mutate(header);
    survives(test::le<std::uint64_t>(changed.size()) + changed + std::string(25, '\7'));
  }
}

// Opcodes in random order, with the operands that they take: what a fuzzer would find quickly.
TEST(DamagedWeights, RandomOpcodes) {
  std::mt19937 random(4);
  const std::vector<std::string> pieces = {"(",
                                           "t",
                                           ")",
                                           "]",
                                           "}",
                                           "e",
                                           "a",
                                           "u",
                                           "s",
                                           "d",
                                           "l",
                                           "N",
                                           "0",
                                           "1",
                                           "2",
                                           "b",
                                           "R",
                                           "Q",
                                           "\x85",
                                           "\x86",
                                           "\x87",
                                           "\x88",
                                           "\x8f",
                                           "\x90",
                                           "\x91",
                                           "\x93",
                                           "\x94",
                                           "\x81",
                                           "\x92",
                                           "o",
                                           std::string("q\0", 2),
                                           "q\1",
                                           std::string("h\0", 2),
                                           "h\1",
                                           "K\1",
                                           "U\1a",
                                           "I5\n",
                                           "F1\n",
                                           "\x8a\1\1",
                                           "ccollections\nOrderedDict\n",
                                           "ctorch._utils\n_rebuild_tensor_v2\n",
                                           "ctorch._utils\n_rebuild_parameter\n",
                                           "ctorch\nFloatStorage\n",
                                           "ctorch\nSize\n"};
  std::size_t finished = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = "\x80\2";
    for (std::size_t n = 1 + random() % 24; n > 0; --n) bytes += pieces[random() % pieces.size()];
    bytes += '.';
    const FileBytes file = test::file_of(bytes);
    try {
      pickle::read(file.bytes, file.name);
      ++finished;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kModel);
    }
  }
  EXPECT_GT(finished, 0u);
}

}  // namespace
}  // namespace nmrf
