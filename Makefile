# `make help` lists every target. Two of them are all that a new machine needs
# (Debian or Ubuntu with Go and apt, as root): `make demo` and `make test`.

# One setting for every build, as test/settings.sh says. Only the race detector needs cgo.
export CGO_ENABLED = 0
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
# So that a script can say what to type.
export MAKECMDGOALS
GO      ?= go
LDFLAGS  = -s -w

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ovnkube, with the links of its classic names, ovn_cni and kubectl-northbound into bin/
	@test/need.sh go
	@test/modules.sh .
	@test/build.sh product

.PHONY: modules
modules: ## download the Go modules of everything that make test needs
	@test/need.sh go
	@test/modules.sh

.PHONY: sandbox
sandbox: build ## build the sandbox into bin/ (the first time compiles Kubernetes: minutes)
	@test/modules.sh . test
	@test/build.sh

.PHONY: demo
demo: ## a three-node cluster on this machine, shown at work; DEMO=keep leaves it up, INSTALL=chart or manifest uses the chart
	@test/demo.sh

.PHONY: test
test: ## all tests of all modules, with real servers and real packets; as root
	@test/run.sh

.PHONY: unit
unit: ## the tests of the product's module alone; as root
	@test/need.sh go root
	@test/deps.sh
	@test/modules.sh .
	GOPROXY=off $(GO) test ./...

.PHONY: oracles
oracles: ## the rows of random policies, and what libraries of others say; ORACLES_SETS=100000 ORACLES_SEED=1 for new sets
	@test/need.sh go
	@test/modules.sh . test/oracles
	GOPROXY=off $(GO) test -C test/oracles -count=1 -v -timeout 10h ./...

.PHONY: image
image: ## the container image as one file, without docker; PUSH=REGISTRY/REPOSITORY:TAG also pushes it; as root
	@test/need.sh go root apt
	@test/deps.sh demo
	@test/modules.sh . test/release
	@test/build.sh release
	@bin/release image $(if $(PUSH),--push $(PUSH))

.PHONY: deb
deb: ## a Debian package with the programs, systemd units, man page and completions, in bin/
	@test/need.sh go
	@test/modules.sh . test/release
	@test/build.sh release
	@bin/release deb

.PHONY: chart
chart: ## the Helm chart as one file, the same as a manifest for kubectl, and helm, in bin/
	@test/need.sh go
	@test/modules.sh . test/helm
	@test/build.sh helm
	@bin/helm package bin/chart --destination bin
	@manifest=bin/northbound-$$(awk '/^version:/ { print $$2 }' bin/chart/Chart.yaml).yaml && \
	  bin/helm template northbound bin/chart --namespace ovn-kubernetes >"$$manifest" && echo "Rendered it to: $$manifest"

.PHONY: plugin
plugin: ## kubectl-northbound for Linux, macOS and Windows, in bin/plugin/
	@test/need.sh go
	@test/modules.sh .
	@test/build.sh plugin

.PHONY: release
release: ## everything that is shipped, with checksums and the list of its parts, in bin/releases/VERSION; as root
	@$(MAKE) --no-print-directory image deb chart plugin
	@bin/release collect

.PHONY: kubeadm
kubeadm: sandbox ## the chart on clusters that kubeadm has made, with kube-proxy and flannel and without; as root
	@test/need.sh root apt
	@test/deps.sh demo
	@test/modules.sh test/helm test/conformance/dns test/flannel test/flannel/plugin
	@test/build.sh helm
	@test/build.sh kubeadm
	bin/sandbox fetch
	GOPROXY=off $(GO) test -C test -count=1 -v -timeout 20m ./e2e/kubeadm

.PHONY: upgrade
upgrade: sandbox ## from the version FROM=REVISION of git to this one and back, on a cluster that works; as root
	@test/deps.sh
	@test/modules.sh test/helm
	@test/build.sh helm
	@[ -n "$(FROM)" ] || { echo "upgrade: from which version? make upgrade FROM=REVISION" >&2; exit 1; }
	test/earlier.sh $(FROM)
	bin/sandbox fetch
	$(GO) test -C test -count=1 -v ./e2e/upgrade

.PHONY: race
race: ## the product's tests with Go's race detector; RACE=./go-controller/internal/ovsdb for one package; as root
	@test/need.sh go root
	@test/deps.sh race
	@test/need.sh cc
	@test/modules.sh .
	CGO_ENABLED=1 GOPROXY=off $(GO) test -race -vet=off -timeout 60m $(or $(RACE),./go-controller/...)

.PHONY: vulncheck
vulncheck: ## known vulnerabilities in what the product calls, and in Go itself; VULNDB=https://vuln.go.dev for today's
	@VULNDB=$(VULNDB) test/vulncheck.sh --strict

.PHONY: vulndb
vulndb: ## have vulncheck know the newest vulnerabilities: a newer version of their database in test/vuln/go.mod
	@test/need.sh go
	$(GO) get -C test/vuln -tool golang.org/x/vulndb/cmd/indexdb@latest
	$(GO) mod tidy -C test/vuln

.PHONY: fuzz
fuzz: ## random input for every parser and for names; FUZZTIME=1m each
	@test/fuzz.sh

# Of the tests of ./e2e, those that kill what works on nodes, or leave it without memory or files.
AGENT_FAULTS := LoseNoPacket|LosesNoPacket|TestAgentWithoutFiles|TestAgentMemory|TestAgentKilled

.PHONY: chaos
chaos: sandbox ## breaks the control plane at random moments, and kills its leaders; prints what it cost; CHAOS_ROUNDS=3
	@test/deps.sh
	bin/sandbox fetch
	CHAOS_SEED=$(or $(CHAOS_SEED),$(shell date +%s)) CHAOS_ROUNDS=$(or $(CHAOS_ROUNDS),3) \
	  CHAOS_AWAY=$(or $(CHAOS_AWAY),90) CHAOS_QUORUM=$(or $(CHAOS_QUORUM),60) \
	  $(GO) test -C test -count=1 -p 1 -v -timeout 60m ./chaos ./e2e/ha
	$(GO) test -C test -count=1 -v -timeout 60m -run '$(AGENT_FAULTS)' ./e2e

.PHONY: windows
windows: sandbox ## packets that pass or are lost while pods and policies change; WINDOW_PODS=500 WINDOW_CHANGES=100
	@test/deps.sh
	bin/sandbox fetch
	WINDOW_PODS=$(or $(WINDOW_PODS),500) WINDOW_CHANGES=$(or $(WINDOW_CHANGES),100) \
	  $(GO) test -C test -count=1 -v -timeout 90m -run '^Test(Policies|ChangedPoliciesLoseNoPacket)$$/(born|labels)' ./e2e/policy

.PHONY: attacks
attacks: sandbox ## what nodes, pods' authors and strangers must not be able to do, tried on a real cluster; as root
	@test/deps.sh
	bin/sandbox fetch
	$(GO) test -C test -count=1 -v -run Attacks ./e2e/attacks

# Tests whose clusters otherwise run the programs as processes of the host.
CHART_SUITES ?= $(addprefix ./e2e/,attacks connections gateway healthcheck hostback nodeport policy services)

.PHONY: chart-suites
chart-suites: sandbox ## end-to-end tests on clusters of the Helm chart; CHART_SUITES=./e2e/gateway for one
	@test/deps.sh
	@test/modules.sh test/helm
	@test/build.sh helm
	bin/sandbox fetch
	SANDBOX_INSTALL=chart $(GO) test -C test -count=1 -p 1 -v -timeout 60m $(CHART_SUITES)

.PHONY: conformance
conformance: ## Kubernetes' own tests of networking, and docs/conformance.md; takes 20 to 26 minutes
	@test/need.sh go root
	@test/deps.sh
	@test/modules.sh . test test/conformance/suite test/conformance/dns
	$(MAKE) --no-print-directory sandbox
	@test/conformance/build.sh
	bin/conformance $(CONFORMANCE)

.PHONY: conformance-primary
conformance-primary: ## the same tests beside primary networks, and inside one; takes about an hour
	@test/need.sh go root
	@test/deps.sh
	@test/modules.sh . test test/conformance/suite test/conformance/dns
	$(MAKE) --no-print-directory sandbox
	@test/conformance/build.sh
	bin/conformance $(CONFORMANCE) primary-networks

.PHONY: conformance-cnp
conformance-cnp: ## network-policy-api's own tests of ClusterNetworkPolicies; takes about 20 minutes
	@test/need.sh go root
	@test/deps.sh
	@test/modules.sh . test test/conformance/suite test/conformance/clusterpolicy
	$(MAKE) --no-print-directory sandbox
	@test/conformance/build.sh cluster-policies
	bin/conformance $(CONFORMANCE) cluster-policies

.PHONY: bench
bench: sandbox ## figures: throughput, latency, restart, services, CNI ADD; beside what this machine can do at most
	$(GO) build -C test -ldflags '$(LDFLAGS)' -o ../bin/hello ./scale/cmd/hello
	$(GO) build -C test -o ../bin/bench ./scale/cmd/bench
	bin/bench

.PHONY: bench-scale
bench-scale: sandbox ## growth: 1,000 to 100,000 pods, which writes the docs' table; ovn-northd with 100 to 500 nodes
	$(GO) build -C test -o ../bin/bench ./scale/cmd/bench
	bin/bench --only scale,northd --write docs/operate

.PHONY: lint
lint: ## the rules of code: gofmt, vet, staticcheck and others, imports, sizes
	@test/lint.sh

.PHONY: generate
generate: ## make the database models again from their schemas
	$(GO) generate ./...

.PHONY: deps
deps: ## install the Debian packages that the tests use
	@test/deps.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
