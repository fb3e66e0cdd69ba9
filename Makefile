# What each target does is what follows its ##; `make` prints it.

# Pinned here and not a tool in go.mod: its modules would become requirements
# of every application that embeds a package of ours.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

VERSION  = $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
FUZZTIME = 30s
PREFIX   = /usr/local

.DEFAULT_GOAL := help
.PHONY: help run test setup build install lint race fuzz faults bench

help:
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

run: build ## build and start everything on embedded stores
	exec bin/tallystick serve

test: setup ## run every test (TESTFLAGS=-v: as go test takes them)
	go test -timeout 12m $(TESTFLAGS) ./...

setup: ## install the servers that the tests start, where missing
	@scripts/setup

build: ## build bin/tallystick
	go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/tallystick ./cmd/tallystick

install: build ## put it into PREFIX/bin (/usr/local)
	mkdir -p $(DESTDIR)$(PREFIX)/bin
	install -m 755 bin/tallystick $(DESTDIR)$(PREFIX)/bin/tallystick

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(find . -name '*.go' ! -path './.*' ! -name '*.pb.go' ! -name '*.connect.go' -exec gofmt -s -l {} +); \
		[ -z "$$unformatted" ] || { echo "run gofmt -s -w on: $$unformatted"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

race: ## run every test with the race detector
	@scripts/setup gcc
	@$(MAKE) --no-print-directory test TESTFLAGS='-race $(TESTFLAGS)'

fuzz: ## fuzz each target for FUZZTIME (30s)
	FUZZTIME=$(FUZZTIME) scripts/fuzz

faults: setup ## run faults, load profiles and oracles at full size
	TALLYSTICK_FULL=1 go test -count=1 -run 'Fault|AheadOfNeed|Postgres' -timeout 60m $(TESTFLAGS) ./...

bench: setup ## measure at full size and write bench/RESULTS.md
	TALLYSTICK_FULL=1 go test -count=1 -run Results -timeout 120m $(TESTFLAGS) ./bench
