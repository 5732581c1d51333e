#!/usr/bin/env bash
# Stops with one line that says what is missing on this machine, and what to type.
# need.sh WHAT...: go, root, apt or cc.
set -euo pipefail

stop() { echo "$*" >&2; exit 1; }

need_go() {
  if ! command -v go >/dev/null; then
    [ ! -x /usr/local/go/bin/go ] || stop 'Go is not in PATH. Type: export PATH=$PATH:/usr/local/go/bin'
    stop "Go is missing. Install Go 1.26 or newer (https://go.dev/doc/install) and put its bin directory into PATH."
  fi
  local have
  have=$(cd / && go env GOVERSION)
  # From 1.21 on, the go command fetches the version that go.mod names by itself.
  [ "$(printf '%s\n' go1.21 "$have" | sort -V | head -n 1)" = go1.21 ] ||
    stop "$have is too old. Install Go 1.26 or newer (https://go.dev/doc/install)."
}

need_root() {
  [ "$(id -u)" = 0 ] ||
    stop "Only root can make network namespaces and mounts. Type: sudo env PATH=\"\$PATH\" make ${MAKECMDGOALS:-TARGET}"
}

need_apt() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    stop "apt-get is missing: this needs Debian or Ubuntu. On another system, try it in a container or virtual machine."
}

need_cc() {
  local cc
  cc=$(cd / && CGO_ENABLED=1 go env CC)
  # shellcheck disable=SC2086 # CC may have flags
  echo '#include <stdlib.h>' | $cc -x c -E -o /dev/null - 2>/dev/null ||
    stop "The race detector needs a C compiler and its headers ($cc). Type: sudo apt-get install gcc libc6-dev"
}

for what; do "need_$what"; done
