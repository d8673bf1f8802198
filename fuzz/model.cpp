// A model from memory, as a program that embeds the library loads it.
#include "fuzz/fuzz.h"
#include "network/model_file.h"

NMRF_FUZZ_TARGET({ nmrf::load_model(std::as_bytes(input), "made.safetensors", {}); })
