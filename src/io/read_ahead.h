// Pairs are decoded by a thread of their own while others are at work.
#pragma once

#include <memory>

#include "io/pair_source.h"

namespace nmrf {

// The pairs of `source`, of which up to `depth` have been read before they are asked for.
std::unique_ptr<PairSource> read_ahead(std::unique_ptr<PairSource> source, std::size_t depth);
// Of a camera: the newest pair whenever one is asked for; those that came before are dropped.
std::unique_ptr<PairSource> newest_only(std::unique_ptr<PairSource> source);

}  // namespace nmrf
