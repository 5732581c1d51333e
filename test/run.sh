#!/usr/bin/env bash
# All tests of all modules. Prints go test's own output and where the time
# went; exits non-zero if anything failed.
#
# Everything is downloaded and built before the first test. The tests see a module cache that holds only what modules.sh
# has put there a moment ago, and the go command may download nothing more: a module that modules.sh forgets makes them
# fail on every machine. The new cache lies, in a mount namespace, over the path of the usual one, so that the build
# cache, which knows packages by their paths, still serves.
set -uo pipefail
cd "$(dirname "$0")/.."
. test/settings.sh
modules=$(go env GOMODCACHE)
fresh=$PWD/bin/_modules         # the go command looks for no packages below a name with "_"
downloads=$PWD/bin/_downloads   # the usual cache's zip files
[[ ${TEST_MINUTES:-75} =~ ^[1-9][0-9]*$ ]] || { echo "TEST_MINUTES=$TEST_MINUTES: want a number of minutes" >&2; exit 1; }

if [ "${1:-}" != inside ]; then
  test/need.sh go root apt || exit 1
  test/deps.sh race && test/need.sh cc || exit 1
  test/modules.sh || exit 1
  rm -rf "$fresh" "$downloads"
  mkdir -p "$fresh" "$downloads" "$modules/cache/download" || exit 1
  trap 'rm -rf "$fresh"; rmdir "$downloads"' EXIT
  unshare --mount test/run.sh inside
  exit
fi

export begun limit=${TEST_MINUTES:-75}
begun=$(date +%s)
status=0
summary=()
output=$(mktemp) # what was printed so far
trap 'rm -f "$output"' EXIT

# timed NAME COMMAND...
timed() {
  local name=$1 started=$SECONDS
  shift
  echo "== $name"
  "$@" 2>&1 | tee -a "$output" || status=1
  summary+=("$(printf '%5d s  %s' $((SECONDS - started)) "$name")")
}

# prepare NAME COMMAND... is timed for what tests can't go without.
prepare() {
  timed "$@"
  [ $status = 0 ] || { echo "$1: failed, so no test was run" >&2; exit 1; }
}

again() {
  mount --bind "$modules/cache/download" "$downloads" && mount --bind "$fresh" "$modules" &&
    GOPROXY=file://$downloads,$(go env GOPROXY) test/modules.sh
}

compile() { for m in . test test/oracles; do go list -C "$m" -deps -test -export ./... >/dev/null || return; done; }

# Packages that start goroutines, or have locks, are tested with the race detector, and not a second time without it.
goroutines='^\s*go (func|[a-z]\w*[.(])|"sync(/atomic)?"|"golang\.org/x/sync|\.Go\('
mapfile -t raced < <(grep -rlE "$goroutines" go-controller --include=*.go --exclude=*_test.go | xargs dirname |
  sort --unique | sed 's#^#./#')
# Of these, the tests that take long with the detector run without it: they compute, or start the test's own program
# many times. The longest come first. Package cni tests the goroutines of cni/server.
slow_raced=(
  './go-controller/internal/nicmove ^Test(Kill|Confirm|Boot|RouterAdvertisements|OpenVSwitchDies)$'
  './go-controller/internal/cni ^Test(AgentCrashes.*|Verb.*State.*|AddFails|.*FurtherInterface.*)$'
  './go-controller/internal/reconcile AtScale$|^Test(EveryDriftIsRepaired|NoInstantIsWrong)$'
  './go-controller/internal/agent ^Test(NodeIsSetUpAndRepaired|GatewayInVLAN|WithOVN)$'
  './go-controller/internal/hostnet/nft ^Test(ContentRepaired|ServiceLocal|AntiSpoof|TunnelsOfPods)$'
  './go-controller/internal/doctor ^TestDamages$'
  './go-controller/cmd/ovnkube ^Test(Events|Docs|PlanErrors|Golden|Completion|Links|GatewayHelper|Ex(plain|ample).*)$'
)
# of_slow_raced FLAG COMMAND runs COMMAND for each package of slow_raced, three at a time. FLAG is -run or -skip.
of_slow_raced() {
  local entry
  for entry in "${slow_raced[@]}"; do printf '%s\0' "$1" "${entry#* }" "${entry%% *}"; done |
    xargs --null --max-args=3 --max-procs=3 bash -c '"$0" "$@"' "$2"
}

# Four packages of the product at a time: most of them wait, for namespaces of the kernel and for servers. The longest
# come first.
long=(./go-controller/internal/{translate,translate/...})
plain() { go test -count=1 -timeout 20m "$@"; }
product() {
  local status=0
  of_slow_raced -run plain &
  { go list "${long[@]}"; go list ./...; } | awk '!seen[$0]++' | grep --invert-match --line-regexp --fixed-strings \
    --file <(go list "${raced[@]}" "${slow_raced[@]%% *}") | xargs go test -count=1 -p 4 -timeout 20m || status=1
  wait $! || status=1
  return $status
}
race() { CGO_ENABLED=1 go test -race -vet=off -count=1 -timeout 20m "$@"; }
export -f plain race
# at_once COMMAND... prints all that the command says when it has ended, since others run beside it.
at_once() {
  local out status=0
  out=$("$@" 2>&1) || status=$?
  printf '%s\n' "$out"
  return $status
}
export -f at_once
# What libraries of others say needs one processor for minutes. It runs beside the tests that mostly wait.
oracles() { at_once go test -C test/oracles -count=1 -timeout 20m -v ./...; }
races() {
  local status=0 rest
  mapfile -t rest < <(go list "${raced[@]}" | grep --invert-match --line-regexp --fixed-strings \
    --file <(go list "${slow_raced[@]%% *}"))
  oracles & local asked=$!
  of_slow_raced -skip race & local slow=$!
  race -p 4 "${rest[@]}" || status=1
  wait $slow || status=1
  wait $asked || status=1
  return $status
}
compile_race() { CGO_ENABLED=1 go list -race -deps -test -export "${raced[@]}" "${slow_raced[@]%% *}" >/dev/null; }

prepare "an empty module cache, filled again" again
export GOPROXY=off
prepare "building ovnkube, the sandbox and Kubernetes (the first time about 10 minutes)" make --no-print-directory sandbox
prepare "helm, for the chart (the first time about 3 minutes)" test/build.sh helm
prepare "kubeadm, what it starts, and flannel (the first time about 2 minutes)" test/build.sh kubeadm
prepare "Multus (the first time about 3 minutes)" test/build.sh multus
prepare "the same programs as an earlier version" test/earlier.sh
prepare "compiling the tests" compile
prepare "compiling some of them with the race detector (the first time about 5 minutes)" compile_race
prepare "the sandbox's root filesystem (the first time about a minute)" bin/sandbox fetch

# on_cluster MINUTES PACKAGE FLAGS... tests a package of the test module, if there are so many minutes left for it. A
# machine that is too slow for all of them says which it has not run, and how to run them: nobody learns anything from a
# run that was ended from outside.
on_cluster() {
  local minutes=$1
  shift
  if (($(date +%s) - begun + minutes * 60 > limit * 60)); then
    echo "== not run, for it may not end within $limit minutes (TEST_MINUTES): go test -C test ${*@Q}"
  else
    at_once go test -C test -count=1 -timeout 40m "${@:2}" "$1"
  fi
}
export -f on_cluster

# Tests that want no packet lost, and their packages. They have the machine for themselves: with another cluster beside
# it, Open vSwitch's userspace datapath has to wait, and loses packets. Each day another one comes first, so that a
# slow machine leaves out others each day.
alone='^(Test.*NoPacket|TestAgentWithoutFiles|TestAgentKilledForItsMemory|TestPolicyLogs|TestChart|TestOpenvSwitch)$'
alone+='|^(TestBothDatabasesLost|TestChaos|TestFlannel|TestTenants|TestUpgrade)$'
alone() {
  local first all=('2 ./e2e/networks' '6 ./e2e/policy' '8 ./chaos' '5 ./e2e/lost' '6 ./e2e' '6 ./e2e/kubeadm'
    '10 ./e2e/upgrade' '20 ./e2e/chart')
  first=$(($(date +%s) / 86400 % ${#all[@]}))
  printf '%s\n' "${all[@]:first}" "${all[@]:0:first}" |
    xargs --replace bash -c 'on_cluster $1 -run "$2"' - '{}' "$alone"
}

# All other tests of the test module, two packages at a time: each brings up a cluster of its own, and often waits. The
# tests of policies ask thousands of questions at once. So they come first, beside those of alerts, which wait the most.
# Then come the longest. Subtests mostly wait, too, so that more of them run at a time than there are cores. Those of
# "slow" are not run here.
first=('20 ./e2e/policy' '12 ./e2e/alerts' '20 ./e2e/networks' '6 ./e2e/gateway' '12 ./e2e' '6 ./e2e/attacks')
slow='/e2e/ha$'
beside() {
  local others='{{if or .TestGoFiles .XTestGoFiles}}5 {{.ImportPath}}{{end}}'
  { printf '%s\n' "${first[@]}"; go list -C test -f "$others" ./... |
    grep -vE "$slow" | grep -vxFf <(go list -C test -f '5 {{.ImportPath}}' "${first[@]#* }"); } | grep . |
    SANDBOX_BESIDE=1 xargs --max-procs=2 --replace bash -c 'on_cluster $1 -parallel 6 -skip "$2"' - '{}' "$alone"
}

timed "product: unit, golden, oracle, fuzz seeds, integration" product
timed "product, with the race detector; policies: what libraries of others say" races
timed "clusters, two at a time: scale, end to end" beside
timed "clusters, one at a time: no packet may be lost" alone
echo "== not run: test/e2e/ha, which kills the leaders of a control plane on three machines for minutes; make chaos runs it" |
  tee -a "$output"

# The failures once more, last of all, for one has to scroll far to find them above: of each test what it said last, and
# the first lines of that.
failures() {
  awk '
    function say() { if (name != "") { print name; for (i = said > 3 ? said - 2 : 1; i <= said; i++) print message[i] } }
    /^ *--- FAIL/ { say(); name = $0; said = 0; next }
    /^ *--- (PASS|SKIP)|^=== |^(ok|\?|FAIL)[ \t]|^FAIL$/ { say(); name = "" }
    /^FAIL\t|^panic: / { print; next }
    name == "" { next }
    /^ +[A-Za-z0-9_]+\.go:[0-9]+: / { message[++said] = substr($0, 1, 400); left = 5; next }
    said && left-- > 0 { message[said] = message[said] "\n" substr($0, 1, 200) }
    END { say() }' "$output"
}

echo "== where the time went"
printf '%s\n' "${summary[@]}"
grep '^== not run' "$output"
if [ $status != 0 ]; then
  echo "== what failed"
  failures
fi
exit $status
