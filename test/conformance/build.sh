#!/usr/bin/env bash
# Builds what the conformance tests run into bin/: Kubernetes' own tests, what
# runs them and programs of their images from suite/, cluster DNS from dns/, and the program that runs them.
# With "cluster-policies": network-policy-api's tests from clusterpolicy/ instead, and what they need.
# The first time compiles more of Kubernetes, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")"
bin=$PWD/../../bin
mkdir -p "$bin"
. ../building.sh

# agnhost_files provides what agnhost's image has beside the program: the identity of its TLS server.
agnhost_files() {
  mkdir -p "$bin/agnhost.d"
  install -m 644 "$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)"/test/images/agnhost/porter/localhost.{crt,key} "$bin/agnhost.d/"
}

if [ "${1:-}" = cluster-policies ]; then
  cd clusterpolicy
  build cluster-policies.test "test -c" "" sigs.k8s.io/network-policy-api/conformance
  api=$(go list -m -f '{{.Dir}}' sigs.k8s.io/network-policy-api)
  install -m 644 "$api"/config/crd/experimental/policy.networking.k8s.io_clusternetworkpolicies.yaml \
    "$bin/clusternetworkpolicies.yaml"
  sed -n 's/^ *image: *//p' "$api"/conformance/base/*.yaml | sort -u >"$bin/cluster-policies.images"
  cd ../suite
  build agnhost build "" k8s.io/kubernetes/test/images/agnhost
  agnhost_files
  cd ../..
  build "" build "" ./conformance/cmd/{agnhost-sctp,conformance}
  exit
fi

cd suite
build e2e.test "test -c" "$(version)" k8s.io/kubernetes/test/e2e
build "" build "" github.com/onsi/ginkgo/v2/ginkgo k8s.io/kubernetes/test/images/agnhost
build boom-server build "" k8s.io/kubernetes/test/images/regression-issue-74839
agnhost_files
cd ../dns
build dns build "" .
cd ../..
build "" build "" ./conformance/cmd/{agnhost-sctp,conformance}
