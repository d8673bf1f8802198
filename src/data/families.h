// The readers behind open_dataset(), one a family of data sets. Each lists what it finds below
// `options.root` and fills the coding; the common settings (divisor, limit, density, the list of
// names to keep) are applied by open_dataset().
#pragma once

#include <vector>

#include "data/dataset.h"

namespace nmrf::families {

using Refs = std::vector<SampleRef>;

Refs sceneflow(const DatasetOptions& options);
Refs flyingthings3d(const DatasetOptions& options);
Refs monkaa(const DatasetOptions& options);
Refs driving(const DatasetOptions& options);
Refs kitti2012(const DatasetOptions& options);
Refs kitti2015(const DatasetOptions& options);
Refs kitti_mix(const DatasetOptions& options);
Refs middeval3_full(const DatasetOptions& options);
Refs middeval3_half(const DatasetOptions& options);
Refs middeval3_quarter(const DatasetOptions& options);
Refs middlebury2001(const DatasetOptions& options);
Refs middlebury2003(const DatasetOptions& options);
Refs middlebury2005(const DatasetOptions& options);
Refs middlebury2006(const DatasetOptions& options);
Refs middlebury2014(const DatasetOptions& options);
Refs eth3d(const DatasetOptions& options);
Refs sintel(const DatasetOptions& options);
Refs fallingthings(const DatasetOptions& options);
Refs tartanair(const DatasetOptions& options);
Refs vkitti2(const DatasetOptions& options);
Refs crestereo(const DatasetOptions& options);
Refs instereo2k(const DatasetOptions& options);
Refs list_file(const DatasetOptions& options);

}  // namespace nmrf::families
