# make demo   match the bundled pair and leave pictures, disparity and a point cloud in out/demo
# make test   build everything and run all tests
# make build  only build; the command is build/release/nmrf
# make asan   the tests under the address and undefined-behaviour sanitizers
PRESET ?= release
BUILD = build/$(PRESET)

.PHONY: demo test build setup asan lint install clean

demo: build
	scripts/demo $(BUILD)/nmrf out/demo

test: build
	cd $(BUILD) && ctest --output-on-failure

build: setup
	@[ -f $(BUILD)/build.ninja ] || cmake --preset $(PRESET)
	cmake --build --preset $(PRESET)

setup:
	@scripts/setup

asan: setup
	cmake --preset asan
	cmake --build --preset asan
	cd build/asan && ctest --output-on-failure

lint:
	scripts/lint

install: build
	cmake --install $(BUILD)

clean:
	rm -rf build out
