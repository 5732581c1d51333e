#!/usr/bin/env bash
# Builds into bin/: with "product" ovnkube, with the links of its classic names, ovn_cni and kubectl-northbound; with
# "plugin" the latter for each platform; with "release" the programs of the image, and the one that packs them; with
# "helm" helm, and the chart; with "kubeadm" kubeadm, and the programs of the containers that it starts, and flannel; with
# "multus" Multus; else the sandbox's programs, and the manifests that it applies.
# The first time that compiles Kubernetes' API server and kubelet, which takes minutes; after that Go's cache has them.
set -euo pipefail
cd "$(dirname "$0")"
bin=$PWD/../bin
mkdir -p "$bin"
. ./building.sh

if [ "${1:-}" = product ]; then
  cd ..
  stamps=$(stamps .)
  build "" build "$stamps" ./go-controller/cmd/{ovnkube,ovn_cni,kubectl-northbound}
  for name in ovn-k8s-overlay ovn-k8s-util ovn-k8s-watcher ovn-k8s-gateway-helper; do ln -sf ovnkube "$bin/$name"; done
  exit
fi
if [ "${1:-}" = plugin ]; then
  cd ..
  stamps=$(stamps .)
  export GOFLAGS="-trimpath -buildvcs=false" # as for "release"
  for platform in linux darwin windows; do
    for processor in amd64 arm64; do
      export GOOS=$platform GOARCH=$processor
      build "plugin/$platform-$processor/" build "$stamps" ./go-controller/cmd/kubectl-northbound
    done
  done
  exit
fi
if [ "${1:-}" = release ]; then
  build release build "" ./release/cmd/release
  # Nothing in these programs depends on the directory, or on how git keeps the checkout. So two machines build the same.
  cd ..
  stamps=$(stamps .)
  mkdir -p "$bin/programs"
  export GOFLAGS="-trimpath -buildvcs=false"
  build programs/ build "$stamps" ./go-controller/cmd/{ovnkube,ovn_cni,kubectl-northbound}
  exit
fi
if [ "${1:-}" = helm ]; then
  cd helm
  build "" build "" helm.sh/helm/v4/cmd/helm
  rm -rf "$bin/chart"
  cp -r ../../dist/helm/northbound "$bin/chart"
  # The chart's version is SemVer (semver.org), that of the programs may be a commit.
  cd ../..
  stamps . | grep -o 'tag=[^ ]*' | cut -d= -f2 | {
    read -r tag || exit 0 # an unpacked archive of sources
    number=${tag#v}
    [[ $number =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]] || number=0.0.0-g$tag
    sed -i "s/^version:.*/version: $number/; s/^appVersion:.*/appVersion: $tag/" "$bin/chart/Chart.yaml"
  }
  exit
fi
if [ "${1:-}" = kubeadm ]; then
  mkdir -p "$bin/kubernetes"
  build kubernetes/ build "$(version)" \
    k8s.io/kubernetes/cmd/{kubeadm,kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy}
  build kubernetes/etcd build "" go.etcd.io/etcd/server/v3
  (cd conformance/dns && build kubernetes/coredns build "" .)
  cd flannel
  build kubernetes/flanneld build "" .
  build kubernetes/ build "" github.com/flannel-io/flannel/cmd/install_conf
  cd plugin
  build kubernetes/flannel build "" github.com/containernetworking/plugins/plugins/meta/flannel
  exit
fi
if [ "${1:-}" = multus ]; then
  cd multus
  build multus build "" gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus
  exit
fi
mkdir -p "$bin/manifests"
cp ../dist/kubernetes/{roles,admission}.yaml "$bin/manifests/"
# In one call, so that no core waits while a program is linked.
build "" build "$(version)" ./sandbox/cmd/{sandbox,sandbox-apiserver,echo,pause} k8s.io/kubernetes/cmd/kubelet
