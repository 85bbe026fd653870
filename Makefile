# SPDX-License-Identifier: MIT
# make demo, make test: all that a fresh Debian 12 needs comes with them. The build itself is CMake's (CMakePresets.json).
.DEFAULT_GOAL := build
.PHONY: help deps configure build demo test bench fuzz asan tsan lint format install clean

PREFIX ?= /usr/local

help:            ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

deps:            ## install the Debian packages that are missing (packages.txt)
	@scripts/install-packages

configure: deps
	@cmake --preset release -Wno-dev --log-level=NOTICE

build: configure ## build/polyad, the libraries, the unit tests
	@cmake --build --preset release

demo: configure  ## decompose the bundled tensor, print its components, write the report
	@cmake --build --preset release --target polyad_tool
	@mkdir -p build/demo
	build/polyad cpd data/kjv-words/kjv-words.tns.gz --rank 12 --nonnegative --transform deviance:3 \
	  --out build/demo/model --report build/demo/kjv-words.html
	@echo "Open $(CURDIR)/build/demo/kjv-words.html in a browser."

test: build      ## every test; tests/run unit cli runs parts
	@tests/run

bench: build     ## the measured ratios of the README, and docs/performance.md
	@for b in build/bench/io_bench build/bench/sort_bench; do echo "$$b"; $$b || exit 1; done
	@bench/performance.py

fuzz: deps       ## every reader against mangled files, FUZZ_SECONDS each (60)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} tests/run fuzz

asan: deps       ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tests/run asan

tsan: deps       ## unit tests under ThreadSanitizer
	@tests/run tsan

lint: deps       ## clang-format and clang-tidy, warnings are errors
	@scripts/lint

format: deps     ## let clang-format write every source file
	@scripts/lint --format

install: build   ## into PREFIX (/usr/local)
	cmake --install build --prefix "$(PREFIX)"

clean:           ## remove everything that was built
	rm -rf build build-*/
