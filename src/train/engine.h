// The network on libtorch as the engine of nmrf::Matcher.
#pragma once

namespace nmrf::train {

// From now on Matcher::load() takes libtorch for a device other than the CPU and when NMRF_PLAIN is
// set in the environment; "auto" is a GPU where there is one. Otherwise the runtime stays in use.
void use_libtorch_engine();

}  // namespace nmrf::train
