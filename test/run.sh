#!/usr/bin/env bash
# All tests of both modules. Prints go test's own output and where the time
# went; exits non-zero if anything failed.
set -uo pipefail
export CGO_ENABLED=0
cd "$(dirname "$0")/.."
status=0
summary=()

# timed NAME COMMAND...
timed() {
  local name=$1 started=$SECONDS
  shift
  echo "== $name"
  "$@" || status=1
  summary+=("$(printf '%5d s  %s' $((SECONDS - started)) "$name")")
}

# One package at a time in the test module: each brings up a cluster of its own.
timed "product: unit, golden, oracle, fuzz seeds, integration" go test -count=1 -timeout 20m ./...
timed "sandbox: scale, end to end" go test -C test -count=1 -p 1 -timeout 40m ./...

echo "== where the time went"
printf '%s\n' "${summary[@]}"
exit $status
