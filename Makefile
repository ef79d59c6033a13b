# Everything here works on a fresh machine with Go 1.26 and make.
SHELL := /bin/bash
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
RAPID_CHECKS ?= 400
FIRST ?= 1000000
N ?= 7000
BENCH ?= .
SEED ?= 1
UNDER ?=
COUNT ?= 5
FUZZTIME ?= 1m
KO := github.com/google/ko@v0.19.1
VERSION ?= $(shell ./hack/version)
BINARY ?= bin/berth
IMAGES ?= berth.local
IMAGE ?= out/image

MINUTES ?= 5
NODES ?=
ONLY ?=
LOGS ?=

.PHONY: scale month generate gate storm release image chart fuzz drains burst launches mutate digests compare versus oracle help build devcluster demo test unit e2e lint bench size soak night fmt clean
help: ## List what can be made
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## Build bin/berth
	@go build -o bin/berth ./cmd/berth

release: ## Build the binary as releases and images have it: BINARY=bin/berth, VERSION from the file VERSION, for GOOS and GOARCH
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags='-s -w -X github.com/berthproject/berth/internal/version.release=$(VERSION)' -o $(BINARY) ./cmd/berth

image: ## Build the image and write it to IMAGE=out/image; push it to IMAGES=registry.example.com/berth with PUSH=true
	@rm -rf '$(IMAGE)' && mkdir -p '$(dir $(IMAGE))'
	VERSION=$(VERSION) KO_DOCKER_REPO=$(IMAGES) go run $(KO) build ./cmd/berth --bare --push=$(or $(PUSH),false) --oci-layout-path '$(IMAGE)' --tags '$(subst +,-,$(VERSION))'

chart: ## Write what is generated with the chart: the flags that values may have, kustomizations, the table in docs/install.md
	go test ./cmd/berth -run ChartFlags -rewrite
	cd deploy/charttest && go test . -run Kustomize -rewrite
	go test ./deploy -run Document -rewrite

devcluster: ## Build devcluster/bin/devcluster (the first time takes some ten minutes on two cores)
	@./hack/build-devcluster

demo: build devcluster ## Play a night batch from nothing and back, then drain services; with TRACE=DIR place an openb trace
ifdef TRACE
	@./devcluster/bin/devcluster trace $(TRACE)
else
	@./devcluster/bin/devcluster demo
endif

test: lint unit fuzz gate e2e ## Everything that CI runs

unit: ## Tests without a cluster
	@./hack/need-chromium
	@./hack/need-cc
	go test ./... -timeout 30m
	CGO_ENABLED=1 go test -race ./edge/... ./drive/... ./cmd/... -timeout 30m
	cd hack/promcheck && go test ./...
	go test ./core/engine ./core -count=1 -run Property -rapid.checks=$(RAPID_CHECKS) -timeout 30m
	go test ./sim/soak -count=1 -v -run Soak -seeds 2500 -timeout 30m
	go test ./sim/soak -count=1 -v -run Draining -seeds 1000 -timeout 30m

fuzz: ## Run each fuzz target for FUZZTIME: configurations, scenarios, recordings, dumps, extenders' answers, marks, objects
	@./hack/fuzz $(FUZZTIME)

soak: SEEDS ?= 20000
soak: ## Play SEEDS random worlds with random faults, from seed FIRST on
	SOAK_OUT=$(CURDIR) go test ./sim/soak -count=1 -timeout 24h -v -run 'Soak|Draining' -seeds $(SEEDS) -first $(FIRST)

night: build ## Simulate the published night batch in its three variants, and write night.html
	@./bin/berth simulate --compare examples/night-batch/capped.yaml examples/night-batch/baked.yaml examples/night-batch/unlimited.yaml
	@./bin/berth simulate --report night.html examples/night-batch/unlimited.yaml >/dev/null && echo "wrote night.html"

month: build ## Simulate a month in which nothing happens: 2,500 nodes of 100 extended resources, 25,000 pods
	@./bin/berth simulate examples/scale/month.yaml

launches: ## Compare adaptive launch control with fixed limits, and draw docs/launch-control-*.svg
	@go run ./hack/launches

drains: ## Drain 1,000 nodes one by one and fifty at a time in the virtual world: how many times as fast?
	go test ./sim -run '^$$' -bench Drains -benchtime 1x -timeout 60m

e2e: build devcluster ## Tests on the dev cluster, and against kube-scheduler's own plugins
	cd devcluster && go test ./... -count=1 -timeout 45m
	cd devcluster && go test ./oracle -count=1 -run PropertyOracle -rapid.checks=$(N)
	cd devcluster && go test ./oracle -count=1 -run 'Cases|Configurations|Refused' -rapid.checks=200
	cd deploy/charttest && go test ./... -count=1 -timeout 20m

oracle: ## Compare verdicts with those of kube-scheduler's plugins on N random clusters, three pods each
	cd devcluster && go test ./oracle -count=1 -v -run Oracle -rapid.checks=$(N)

storm: SEEDS ?= 1
storm: build devcluster ## Play bad days on the dev cluster, one of MINUTES=5 for each of SEEDS=1..3, of misfortunes ONLY=kind,kind (docs/storm.md)
	@./devcluster/bin/devcluster storm --seeds $(SEEDS) --minutes $(MINUTES) --only '$(ONLY)' --logs '$(LOGS)'

lint: ## Formatting, vet and golangci-lint, with the rule that the core is pure
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted (make fmt):"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@for module in . devcluster deploy/charttest hack/promcheck; do (cd $$module && go mod tidy -diff) || { echo "go.mod in $$module isn't tidy: run go mod tidy there"; exit 1; }; done
	go run $(GOLANGCI) run ./...

gate: ## Fail when placements have become dearer than docs/performance-history.tsv says; RECORD=1 writes down what has changed
	go run ./hack/gate $(if $(RECORD),-record)

scale: ## Measure how time and memory grow up to 100,000 nodes and 1,000,000 pods, and put it into docs/performance.md (half an hour, 12 GiB); NODES=1000,5000 prints a table only, KEEP=FILE lets an interrupted run go on
	go run ./hack/scale $(if $(NODES),--nodes $(NODES),--write) $(if $(KEEP),--keep $(KEEP))

compare: ## Engine against kube-scheduler's algorithm in one run, BENCH=regexp, with the ratios
	cd devcluster && go test ./oracle -timeout 60m -run '^$$' -bench 'Placement/$(BENCH)' -benchtime 1000x -count $(COUNT) | tee ../out.compare
	go run $(BENCHSTAT) -col /by out.compare

versus: build devcluster ## kube-scheduler and Berth side by side on the dev cluster, ARGS='--full --case basic --rounds 3' (all cases: half an hour; with --full: a day)
	@./devcluster/bin/devcluster bench $(ARGS)

bench: ## Benchmarks of the engine, the planner, the driver, the external provider and the simulator, BENCH=regexp, summed up by benchstat
	go test ./core/engine ./core ./core/autoscaler/planner ./core/autoscaler/scaledown ./drive ./edge/provider/externalgrpc ./sim -timeout 60m -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) | tee out.bench
	go run $(BENCHSTAT) out.bench

size: build devcluster ## Measure speed and memory with 5,000 nodes and 50,000 pods on the dev cluster
	./devcluster/bin/devcluster size

burst: build devcluster ## Measure on the dev cluster how soon nodes are asked for after the last of 18,000 pods
	./devcluster/bin/devcluster burst

digests: ## Play the examples and 500 random worlds: does every decision stay as hack/digests/digests.txt has it?
	@go run ./hack/digests > out.digests
	@diff -U 0 hack/digests/digests.txt out.digests && echo "no decision has changed"

mutate: N = 100
mutate: ## Change N random lines one at a time, drawn by SEED, UNDER=core/queue: which changes does no test notice?
	@go run ./hack/mutate -n $(N) -seed $(SEED) -under '$(UNDER)'

generate: ## Generate Go code from .proto files
	@go run ./hack/protogen

fmt: ## Format
	gofmt -w $$(git ls-files '*.go')

clean: ## Remove what was built
	rm -rf bin devcluster/bin out.bench out.compare out.digests
