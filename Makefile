# Everything here is a thin name for a script in ci/ or a Go command; `make help` lists the targets.
# The repository holds several modules (go.work), and ./... stops at a module's edge, so the scripts iterate.

SHELL := /bin/bash
GO    ?= go

# make bench: BENCH picks by name, COUNT repeats (ten before any claim), BENCHTIME is go test's -benchtime.
BENCH     ?= .
COUNT     ?= 1
BENCHTIME ?= 1s
# make test: TESTS=-long runs all tests of what most changes touch, TESTS=-rest those of the rest: ci/test.
TESTS     ?=
# make fuzz: the time given to each target.
FUZZTIME  ?= 30s
# make zoo: SERVERS picks by name; DEBIAN is the folder of ci/openssl-versions -servers, for real servers too.
SERVERS   ?= .
DEBIAN    ?=

.DEFAULT_GOAL := help
.PHONY: help demo zoo test test-resumption lint bench fuzz

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  ci/matrix             the tests under every supported OpenSSL, with FIPS, on musl, and on arm64"
	@echo "  .ci/run               these and all the other checks"

demo: ## run servers and clients on the host's OpenSSL and compare them with crypto/tls
	@$(GO) build -buildvcs=false -o bin/ossl ./cmd/ossl
	@bin/ossl demo

zoo: ## start TLS servers, sound and broken ones, and print what an audit must say of each
	@$(GO) build -buildvcs=false -o bin/zoo ./audit/zoo
	@bin/zoo -only '$(SERVERS)' -debian '$(DEBIAN)'

test: ## test what most changes touch; TESTS=-long: more of it, under the race detector
	@ci/test $(TESTS)

test-resumption: ## have curl, Java, BearSSL and other clients resume sessions; installs those that are missing if root
	@ci/resumption

lint: ## gofmt, vet, staticcheck, tidy go.mod files, line lengths, shell scripts
	@ci/lint

bench: ## measure beside crypto/tls: BENCH=. COUNT=1 BENCHTIME=1s
	cd cmd/ossl/internal/bench && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime '$(BENCHTIME)' -count $(COUNT) \
		-timeout 2h

fuzz: ## run every fuzz target for FUZZTIME=30s
	@FUZZTIME='$(FUZZTIME)' ci/fuzz
