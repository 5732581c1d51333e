#!/usr/bin/env bash
# Looks for known vulnerabilities in what the product calls. The database is the one that test/vuln/go.mod pins, so a run
# says the same tomorrow, and needs nothing but Go modules. VULNDB=URL names another, such as https://vuln.go.dev.
# With --strict, vulnerabilities of Go's own library fail, too.
set -euo pipefail
cd "$(dirname "$0")/.."
. test/settings.sh
test/need.sh go && test/modules.sh . test/vuln
mkdir -p bin
if [ -z "${VULNDB:-}" ]; then
  database=$(go list -C test/vuln -m -f '{{.Version}} {{.Dir}}' golang.org/x/vulndb)
  VULNDB=file://$PWD/bin/_vulndb
  rm -rf bin/_vulndb
  go tool -C test/vuln indexdb -vulns "${database#* }/data/osv" -out "$PWD/bin/_vulndb"
  echo "The database of vulnerabilities: golang.org/x/vulndb ${database%% *}"
fi
go build -C test/vuln -o ../../bin/ golang.org/x/vuln/cmd/govulncheck ./vulncheck
bin/govulncheck -db "$VULNDB" -format json ./go-controller/... | bin/vulncheck "$@"
