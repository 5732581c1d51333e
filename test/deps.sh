#!/usr/bin/env bash
# Installs the Debian packages that the tests use. What is already there is not
# touched, and nothing is started: the tests start their own servers.
# With "demo" it installs only what the sandbox uses on the machine itself, with "race" a C compiler, too.
set -euo pipefail
cd "$(dirname "$0")"

packages=(
  debootstrap                   # makes the sandbox's Debian 13 root filesystem, with all that runs in it
  iproute2 util-linux procps    # ip, tc, nsenter, unshare, sysctl
)
[ "${1:-}" = demo ] || packages+=(
  openvswitch-common openvswitch-switch # ovsdb-server, ovsdb-tool, ovs-vswitchd, ovs-vsctl
  ovn-common ovn-central ovn-host       # ovn-nbctl, ovn-northd, ovn-controller
  ethtool iputils-ping nftables         # ethtool, ping, nft
  iptables                              # what the portmap plugin writes its rules with
  zsh fish                              # shells that ovnkube's commands are completed in
  prometheus                            # and promtool: for the alerts
)

# The race detector is linked by a C compiler. Another one than gcc may be there, and be named by CC.
if [ "${1:-}" = race ] && ! ./need.sh cc 2>/dev/null; then packages+=(gcc libc6-dev); fi

./need.sh apt
missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "Only root can install the missing packages. Type: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "Installing Debian packages, less than a minute: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# While packages are installed no service may start: not Open vSwitch, not OVN.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi
log=$(mktemp)
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "apt-get could not install ${missing[*]}: its last lines are above." >&2
  exit 1
fi
rm -f "$log"
