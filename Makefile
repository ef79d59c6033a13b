# Everything here works on a fresh machine with Go 1.26 and make.
SHELL := /bin/bash
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
KO := github.com/google/ko@v0.19.1
VERSION ?= $(shell ./hack/version)
BINARY ?= bin/berth
IMAGES ?= berth.local/berth
IMAGE ?= out/image

.PHONY: help build release image chart devcluster demo check test nightly lint bench figures generate ui fmt clean
help: ## List what can be made
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## Build bin/berth
	@./hack/need-go
	@go build -o bin/berth ./cmd/berth

release: ## Build the binary as releases and images have it: BINARY=bin/berth, VERSION from the file VERSION, for GOOS and GOARCH
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags='-s -w -X github.com/berthproject/berth/internal/version.release=$(VERSION)' -o $(BINARY) ./cmd/berth

image: ## Build the image and write it to IMAGE=out/image; push it to IMAGES=registry.example.com/berth with PUSH=true; write it for docker load and ctr import to ARCHIVE=out/berth.tar
	@rm -rf '$(IMAGE)' && mkdir -p $(patsubst %,'%',$(dir $(IMAGE) $(ARCHIVE)))
	VERSION=$(VERSION) KO_DOCKER_REPO=$(IMAGES) go run $(KO) build ./cmd/berth --bare --push=$(or $(PUSH),false) --oci-layout-path '$(IMAGE)' --tags '$(subst +,-,$(VERSION))'$(if $(ARCHIVE), --tarball '$(ARCHIVE)' --platform linux/$(or $(GOARCH),$(shell go env GOARCH)))
	@echo 'The chart takes this image with --set image.repository=$(IMAGES) --set image.tag=$(subst +,-,$(VERSION))'

chart: ## Write what is generated with the chart: alerts and dashboard, the schema of the values and their table in its README, kustomizations
	go run ./hack/watch
	go test ./cmd/berth -run ChartFlags -rewrite
	go test ./deploy -run ValuesAreDescribed -rewrite
	cd deploy/charttest && go test . -run Kustomize -rewrite

devcluster: ## Build devcluster/bin/devcluster (the first time takes some minutes)
	@./hack/build-devcluster

demo: build ## Play a night batch from nothing and back, then drain services; with TRACE=DIR place an openb trace
	@./hack/build-devcluster demo
	@./devcluster/bin/demo $(if $(TRACE),trace '$(TRACE)')

check: ## Vet, formatting and short unit tests, for the minute-by-minute loop (3 minutes once built)
	@go run ./hack/tiers check

test: ## What every change must pass, with Go and make alone (some 35 minutes on two cores)
	@go run ./hack/tiers test

# ONLY=soak,fuzz runs these stages, and a wrong name lists all. A failure prints the command that repeats it.
nightly: ## Everything, in hours; ONLY=stage,stage, SEED=number, WORLDS=20000, N=50000 clusters, FUZZTIME=10m
	@go run ./hack/tiers $(if $(ONLY),-only '$(ONLY)') $(if $(SEED),-seed $(SEED)) $(if $(WORLDS),-worlds $(WORLDS)) $(if $(N),-clusters $(N)) $(if $(FUZZTIME),-fuzztime $(FUZZTIME)) nightly

# golangci-lint's cache names files by the checkout that they were in, and another one's may be gone
# with its nolint comments: each checkout has a cache of its own.
lint: ## Formatting, vet and golangci-lint, with the rule that the core is pure
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted (make fmt):"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@for module in . devcluster devcluster/oracle devcluster/oracle136 devcluster/jobs/kueue devcluster/jobs/jobset devcluster/jobs/lws deploy/charttest hack/generate hack/promcheck; do (cd $$module && go mod tidy -diff) || { echo "go.mod in $$module isn't tidy: run go mod tidy there"; exit 1; }; done
	GOLANGCI_LINT_CACHE='$(CURDIR)/out/golangci-lint' go run $(GOLANGCI) run ./...

bench: ## Measure WHAT=core, place, plan, compare, versus, size, burst, scale, drains, month or gate (docs/performance.md)
	@BENCHSTAT=$(BENCHSTAT) ./hack/bench '$(or $(WHAT),core)'

figures: ## Reproduce published figures beside Berth's, as tables and pictures in out/figures; ONLY=figure,figure, WRITE=1 for docs/figures.md
	@go run ./hack/figures $(if $(ONLY),-only '$(ONLY)') $(if $(WRITE),-write)

generate: ## Generate Go code from the .proto file, and the schemas of scenarios and of the API
	@cd hack/generate && go run .

# Only those who change ui/src need Node, 20 or later.
ui: # Build the web page into ui/dist, and test its functions
	@cd ui && npm ci --no-audit --no-fund && npm run build && npm test

fmt: ## Format
	gofmt -w $$(git ls-files '*.go')

clean: ## Remove what was built
	rm -rf bin devcluster/bin out
