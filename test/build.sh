#!/usr/bin/env bash
# Builds the sandbox's programs into bin/. The first time this compiles
# Kubernetes' API server and kubelet, which takes minutes; after that Go's cache
# has them. Says what is being built, and for how long.
set -euo pipefail
export CGO_ENABLED=0 # static programs, and one build cache
cd "$(dirname "$0")"
bin=$PWD/../bin
mkdir -p "$bin"

k8s=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
version="-X k8s.io/component-base/version.gitVersion=$k8s"

# build NAME PACKAGE [LDFLAGS]
build() {
  local name=$1 package=$2 flags=${3:-} started=$SECONDS pid
  go build -ldflags "-s -w $flags" -o "$bin/$name" "$package" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    # Wait a little, but not longer than the build.
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -0 "$pid" 2>/dev/null && echo "building $name: $((SECONDS - started)) s so far, $(compiled) packages compiled"
  done
  wait "$pid"
  [ $((SECONDS - started)) -lt 5 ] || echo "built $name in $((SECONDS - started)) s"
}

# compiled is how many packages the go command has finished since we began.
compiled() { find "$(go env GOCACHE)" -name '*-a' -newer "$stamp" 2>/dev/null | wc -l; }
stamp=$(mktemp)
trap 'rm -f "$stamp"' EXIT

build sandbox ./sandbox/cmd/sandbox
build sandbox-apiserver ./sandbox/cmd/sandbox-apiserver "$version"
build kubelet k8s.io/kubernetes/cmd/kubelet "$version"
build echo ./sandbox/cmd/echo
build pause ./sandbox/cmd/pause
