#!/usr/bin/env bash
# Builds what an upgrade begins with into bin/earlier: the programs and the chart.
# earlier.sh REVISION takes them from git. Without a revision they are this source's, under another version.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
source=$here
bin=$here/bin/earlier
. test/building.sh
if [ $# -gt 0 ]; then
  source=$(mktemp -d)
  trap 'rm -rf "$source"; git -C "$here" worktree prune' EXIT
  git worktree add --quiet --force --detach "$source" "$1"
  GOPROXY=$(env -u GOPROXY go env GOPROXY) go list -C "$source" -deps ./go-controller/... >/dev/null # downloads modules
else
  export NORTHBOUND_VERSION=v0.0.0-earlier
fi
rm -rf "$bin"
mkdir -p "$bin"
cd "$source"
stamps=$(stamps .)
build "" build "$stamps" ./go-controller/cmd/{ovnkube,ovn_cni}
cp -r dist/helm/northbound "$bin/chart"
# The sandbox itself stays the same.
cp -rl "$here"/bin/{sandbox,sandbox-apiserver,kubelet,echo,pause,helm,manifests} "$bin"
