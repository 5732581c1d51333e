#!/usr/bin/env bash
# Checks the rules of code. Exits non-zero if anything breaks one.
set -uo pipefail
cd "$(dirname "$0")/.."
test/need.sh go && test/modules.sh . test test/lint test/oracles || exit 1
bin=$PWD/bin
mkdir -p "$bin"
. test/building.sh
status=0

# check WHAT COMMAND... names what is wrong before the command's output.
check() {
  local what=$1 started=$SECONDS
  shift
  "$@" || { status=1; echo "$what: see above" >&2; }
  [ $((SECONDS - started)) -lt 5 ] || echo "$what: $((SECONDS - started)) s"
}

# formatted prints the files that gofmt would change.
formatted() { [ -z "$(gofmt -l go-controller test | grep -v /testdata/ | tee /dev/stderr)" ]; }

# Without the commit in it: another program would look at every package of Kubernetes again.
(cd test/lint && GOFLAGS="$GOFLAGS -buildvcs=false" build "" build "" ../lint ./limits) || exit 1
check "gofmt" formatted
check "lines, functions and files that are too long" bin/limits . test/lint/pending.txt
check "the linter's own tests" go test -C test/lint ./...
check "rules, product" go vet -vettool="$bin/lint" ./...
check "rules, linter" go vet -C test/lint -vettool="$bin/lint" ./...
check "rules, libraries about policies" go vet -C test/oracles -vettool="$bin/lint" ./...
[ -x "$bin/kubelet" ] ||
  echo "For the test module Kubernetes is compiled, as for the tests: about 7 minutes on two cores, once"
check "rules, test module" go vet -C test -vettool="$bin/lint" ./...
exit $status
