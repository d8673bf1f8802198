// Marks what the shared libraries export; everything else is hidden.
#pragma once

#if defined(_WIN32)
#define NMRF_API
#else
#define NMRF_API __attribute__((visibility("default")))
#endif
