#!/usr/bin/env bash
# Builds what the demonstration needs and runs it. Says first what takes how long on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
test/need.sh go root

cold=false
[ -x bin/kubelet ] || cold=true
if $cold; then
  cat <<'END'
make demo brings up a real Kubernetes cluster of three nodes on this machine. The first time this takes a while:
  about 1 minute     Go modules are downloaded (800 MB on disk)
  about 1 minute     ovnkube is compiled
  about 7 minutes    Kubernetes' API server and kubelet are compiled, on two cores (4 GB of disk)
  about 1 minute     a Debian 13 root filesystem with OVN is fetched (500 MB)
and then, as every later time:
  about 1 minute     the cluster comes up, is shown at work, and is removed
END
fi
test/deps.sh demo
test/modules.sh . test
test/build.sh product
if $cold; then
  echo
  echo "While Kubernetes is compiled: what Northbound makes of another small cluster, with no server at all."
  echo '$ bin/ovnkube translate -f docs/features/cluster.yaml -o show'
  bin/ovnkube translate -f docs/features/cluster.yaml -o show
  echo
fi
test/build.sh
if [ -n "${INSTALL:-}" ]; then
  echo "Building helm (the first time about 3 minutes)"
  test/modules.sh test/helm
  test/build.sh helm
fi
exec bin/sandbox demo --install "${INSTALL:-}"
