#!/usr/bin/env bash
# Builds the sandbox's programs into bin/. The first time this compiles
# Kubernetes' API server and kubelet, which takes minutes; after that Go's cache
# has them.
set -euo pipefail
cd "$(dirname "$0")"
bin=$PWD/../bin
mkdir -p "$bin"
. ./building.sh

build sandbox ./sandbox/cmd/sandbox
build sandbox-apiserver ./sandbox/cmd/sandbox-apiserver "$(version)"
build kubelet k8s.io/kubernetes/cmd/kubelet "$(version)"
build echo ./sandbox/cmd/echo
build pause ./sandbox/cmd/pause
