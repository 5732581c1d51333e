#!/usr/bin/env bash
# Fuzzes every target of the product for FUZZTIME (default 1m) each. An input that fails is kept in the package's
# testdata/fuzz, where the next `make test` runs it.
set -uo pipefail
cd "$(dirname "$0")/.."
. test/settings.sh
test/need.sh go && test/modules.sh . || exit 1
status=0
for package in $(grep -rl --include='*_test.go' '^func Fuzz' go-controller | xargs -n 1 dirname | sort -u); do
  for target in $(grep -ho '^func Fuzz[A-Za-z0-9]*' "$package"/*_test.go | cut -d ' ' -f 2); do
    echo "== $package $target, for ${FUZZTIME:=1m}"
    # Without a limit, a run may spend its whole time on making one input smaller.
    go test "./$package" -run - -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 1s || status=1
  done
done
exit $status
