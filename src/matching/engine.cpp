#include "matching/engine.h"

#include <atomic>

namespace nmrf {
namespace {

std::atomic<EngineFactory> g_factory{nullptr};

}  // namespace

void set_engine_factory(EngineFactory factory) { g_factory = factory; }
EngineFactory engine_factory() { return g_factory; }

}  // namespace nmrf
