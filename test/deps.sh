#!/usr/bin/env bash
# Installs the Debian packages that the tests use. What is already there is not
# touched, and nothing is started: the tests start their own servers.
set -euo pipefail

packages=(
  openvswitch-common openvswitch-switch # ovsdb-server, ovsdb-tool, ovs-vswitchd, ovs-vsctl
  ovn-common ovn-central ovn-host       # ovn-nbctl, ovn-northd, ovn-controller
  debootstrap                           # makes the sandbox's Debian 13 root filesystem, with all that runs in it
  iproute2 ethtool iputils-ping util-linux # ip, tc, ethtool, ping, nsenter
  procps nftables                       # sysctl, nft
  iptables                              # what the portmap plugin writes its rules with
)

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "these packages are missing and only root can install them: ${missing[*]}" >&2
  exit 1
fi
command -v apt-get >/dev/null || { echo "apt-get is missing: install by hand: ${missing[*]}" >&2; exit 1; }
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# While packages are installed no service may start: not Open vSwitch, not OVN.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
