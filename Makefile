# make demo     match the bundled pair; results in out/demo. Installs the few packages it needs.
# make test     build everything and run all tests. Installs all packages.
# make build    only build; the command is build/release/nmrf
# make install  build and install (DESTDIR, PREFIX=/usr/local)
# make asan     the tests of the library and nmrf under the address and undefined-behaviour sanitizers
# make tsan     the same under the thread sanitizer
# make fuzz     a minute of every fuzz target
# make python   the Python package as a wheel, into out/python
# make web      the browser page, into out/web; make web-serve shows it, make web-test drives it in Chromium
# make package  Debian packages and an archive for other Linux systems, into out/packages
# make package-test  unpacks and runs these and the wheel
# make docs     the API reference of the public headers, into out/docs; make reference rewrites docs/cli.md and docs/settings.md
# make check-docs  runs the commands of all documents
# Only demo, test, docs, fuzz, python, package, web and web-test call the package manager, and say so. PRESET=runtime builds no more than matching
# needs; see CMakePresets.json.
PRESET ?= release
BUILD = build/$(PRESET)
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3

.PHONY: demo test build docs reference check-docs asan tsan fuzz lint install python package package-test web web-serve web-test clean

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

docs:
	scripts/setup docs
	mkdir -p out
	doxygen docs/Doxyfile
	@echo out/docs/html/index.html

reference: build
	scripts/reference $(BUILD)

check-docs: build
	scripts/check_docs $(BUILD)

lint:
	scripts/lint

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

python:
	scripts/setup python
	rm -rf out/python
	$(PYTHON) -m pip wheel . --no-build-isolation --no-deps -q -w out/python
	@ls -sh out/python/*.whl

web:
	scripts/setup web
	web/build out/web

web-serve: web
	node web/serve.mjs out/web $(or $(PORT),8080)

web-test:
	scripts/setup web-test
	web/build out/web
	web/test/run

# CPack leaves its working folder behind.
package:
	scripts/setup package
	rm -rf out/packages
	cmake --preset package
	cmake --build --preset package
	cd build/package && cpack -G DEB -B $(CURDIR)/out/packages
	cmake --preset portable
	cmake --build --preset portable
	cd build/portable && cpack -G TGZ -B $(CURDIR)/out/packages
	rm -rf out/packages/_CPack_Packages
	@ls -sh out/packages

package-test: package python
	scripts/test_packages

clean:
	rm -rf build out nmrf.egg-info
