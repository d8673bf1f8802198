# make demo     match the bundled pair; results in out/demo. Installs the few packages it needs.
# make test     build everything and run all tests. Installs all packages.
# make build    only build; the command is build/release/nmrf
# make install  build and install (DESTDIR, PREFIX=/usr/local)
# make asan     the tests under the address and undefined-behaviour sanitizers; make tsan: threads
# make fuzz     a minute of every fuzz target
# make python   the Python package as a wheel, into out/python
# Only demo, test, fuzz and python call the package manager, and say so. PRESET=runtime builds no more than matching
# needs; see CMakePresets.json.
PRESET ?= release
BUILD = build/$(PRESET)
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3

.PHONY: demo test build asan tsan fuzz lint install python clean

demo:
	scripts/setup runtime
	@[ -f build/runtime/build.ninja ] || cmake --preset runtime -DNMRF_BUILD_TESTS=OFF
	cmake --build --preset runtime --target nmrf_command
	scripts/demo build/runtime/nmrf out/demo

test:
	scripts/setup all
	cmake --preset $(PRESET) -DNMRF_BUILD_TESTS=ON $(FLAGS)
	cmake --build --preset $(PRESET)
	scripts/test $(BUILD)

build:
	@[ -f $(BUILD)/build.ninja ] || cmake --preset $(PRESET) || \
	  { echo "scripts/setup all installs the packages that are missing" >&2; exit 1; }
	cmake --build --preset $(PRESET)

asan:
	cmake --preset asan
	cmake --build --preset asan
	scripts/test build/asan

tsan:
	cmake --preset tsan
	cmake --build --preset tsan
	scripts/test build/tsan

fuzz:
	scripts/setup ci
	scripts/fuzz 60

lint:
	scripts/lint

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

python:
	scripts/setup python
	$(PYTHON) -m pip wheel . --no-build-isolation --no-deps -q -w out/python
	@ls -sh out/python/*.whl

clean:
	rm -rf build out nmrf.egg-info
