#!/usr/bin/env bash
# Downloads the Go modules of everything that builds and tests of a Go module compile, and says so.
# modules.sh DIRECTORY...: of go.mod files, from the top of the repository: ".", test, test/conformance/suite ..., or of
# some packages of such a module: test/release. Without any, of all that "make test" needs.
# Whatever runs after it can run with GOPROXY=off.
set -euo pipefail
cd "$(dirname "$0")/.."
. test/settings.sh
tested=(. test test/oracles test/helm test/conformance/dns test/flannel test/flannel/plugin test/multus)
[ $# -gt 0 ] || set -- "${tested[@]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# packages DIRECTORY loads what is built there: loading downloads the modules.
packages() {
  case $1 in
  test/helm | test/flannel/plugin | test/multus) ;; # these only pin a program
  *) go list -C "$1" -deps -test ./... || return ;;
  esac
  case $1 in
  .) go list -C "$1" -deps tool ;; # the CNI plugins that tests build, and the generator of models
  test)
    go list -C "$1" -deps k8s.io/kubernetes/cmd/{kubelet,kubeadm,kube-apiserver,kube-controller-manager,kube-scheduler} \
      k8s.io/kubernetes/cmd/kube-proxy go.etcd.io/etcd/server/v3
    ;;
  test/vuln) go list -C "$1" -deps tool ;;
  test/helm) go list -C "$1" -deps helm.sh/helm/v4/cmd/helm ;;
  test/flannel) go list -C "$1" -deps github.com/flannel-io/flannel/cmd/install_conf ;;
  test/flannel/plugin) go list -C "$1" -deps github.com/containernetworking/plugins/plugins/meta/flannel ;;
  test/multus) go list -C "$1" -deps gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus ;;
  test/conformance/suite)
    go list -C "$1" -deps github.com/onsi/ginkgo/v2/ginkgo k8s.io/kubernetes/test/images/agnhost \
      k8s.io/kubernetes/test/images/regression-issue-74839 && go list -C "$1" -deps -test k8s.io/kubernetes/test/e2e
    ;;
  test/conformance/clusterpolicy) go list -C "$1" -deps -test sigs.k8s.io/network-policy-api/conformance ;;
  esac
}

# there tells whether all modules of a directory have been downloaded.
there() { GOPROXY=off packages "$1" >/dev/null 2>&1; }

count() { grep -c '^go: downloading' "$log" || true; }

for directory; do
  ! there "$directory" || continue
  echo "Downloading the Go modules that $directory needs (once, about a minute)"
  started=$SECONDS
  packages "$directory" >/dev/null 2>"$log" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    ! kill -0 "$pid" 2>/dev/null || echo "  ... $((SECONDS - started)) s so far, $(count) modules"
  done
  if ! wait "$pid"; then
    grep -v '^go: downloading' "$log" >&2
    echo "Downloading failed. Is this machine online? \`go env GOPROXY\` names where modules come from." >&2
    exit 1
  fi
  echo "Downloaded $(count) modules in $((SECONDS - started)) s"
done
