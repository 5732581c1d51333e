#!/usr/bin/env bash
# Builds the sandbox's programs into bin/. The first time this compiles
# Kubernetes' API server and kubelet, which takes minutes; after that Go's cache
# has them.
set -euo pipefail
cd "$(dirname "$0")"
bin=$PWD/../bin
mkdir -p "$bin"
. ./building.sh

# In one call, so that no core waits while a program is linked.
build "" build "$(version)" ./sandbox/cmd/{sandbox,sandbox-apiserver,echo,pause} k8s.io/kubernetes/cmd/kubelet
