# Sourced by the scripts that build the tests' programs into bin/, from the
# directory of their module. Says what is being built, and for how long.
export CGO_ENABLED=0 # static programs, and one build cache

stamp=$(mktemp)
trap 'rm -f "$stamp"' EXIT

# compiled is how many packages the go command has finished since we began.
compiled() { find "$(go env GOCACHE)" -name '*-a' -newer "$stamp" 2>/dev/null | wc -l; }

# kubernetes is the version of Kubernetes in this module, and version the linker
# flag that tells it to its programs.
kubernetes() { go list -m -f '{{.Version}}' k8s.io/kubernetes; }
version() { echo "-X k8s.io/component-base/version.gitVersion=$(kubernetes)"; }

# build NAME PACKAGE [LDFLAGS [HOW]]; HOW is "build", or "test -c" for a program of tests
build() {
  local name=$1 package=$2 flags=${3:-} how=${4:-build} started=$SECONDS pid
  # shellcheck disable=SC2086 # HOW is words
  go $how -ldflags "-s -w $flags" -o "$bin/$name" "$package" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    # Wait a little, but not longer than the build.
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -0 "$pid" 2>/dev/null && echo "building $name: $((SECONDS - started)) s so far, $(compiled) packages compiled"
  done
  wait "$pid"
  [ $((SECONDS - started)) -lt 5 ] || echo "built $name in $((SECONDS - started)) s"
}
