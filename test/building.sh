# Sourced by the scripts that build the tests' programs into bin/, from the
# directory of their module. Says what is being built, and for how long.
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
export GOPROXY=off # modules.sh has downloaded what is needed

# left PACKAGE... is how many packages are still to be compiled.
left() { go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$@" 2>/dev/null | grep -c . || true; }

# kubernetes is the version of Kubernetes in this module, and version the linker
# flag that tells it to its programs.
kubernetes() { go list -m -f '{{.Version}}' k8s.io/kubernetes; }
version() { echo "-X k8s.io/component-base/version.gitVersion=$(kubernetes)"; }

# stamps DIRECTORY prints the linker flags that tell our own programs their version. NORTHBOUND_VERSION names it, else git
# does, of the checkout in DIRECTORY. Without both there are no flags, as in an unpacked archive of sources: the programs
# then say what Go recorded.
stamps() {
  local package=github.com/northbound-net/northbound/go-controller/internal/version
  local tag=${NORTHBOUND_VERSION:-} commit='' time=''
  if [ -e "$1/.git" ] && command -v git >/dev/null; then
    # An error of git is on the terminal. It must not fail a build.
    if commit=$(git -C "$1" rev-parse HEAD); then
      time=$(TZ=UTC0 git -C "$1" log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)
      tag=${tag:-$(git -C "$1" describe --tags --always --dirty)}
    else
      commit=''
    fi
  fi
  [ -n "$tag" ] || return 0
  if [[ $tag =~ [^A-Za-z0-9._+~-] ]]; then
    echo "Version $tag: want letters, digits and . _ + ~ - only. Set NORTHBOUND_VERSION to one such as v1.2.3" >&2
    return 1
  fi
  echo "-X $package.tag=$tag -X $package.commit=$commit -X $package.commitTime=$time"
}

# build OUTPUT WORDS FLAGS PACKAGE...: WORDS is "build", or "test -c" for a program of tests; OUTPUT a file in bin, or
# "" for files of the packages' names; FLAGS the linker's.
# All packages of one call are compiled side by side.
build() {
  local output=$bin/$1 words=$2 flags=$3 started=$SECONDS all=0 pid still
  shift 3
  # shellcheck disable=SC2086 # words
  go $words -ldflags "-s -w${flags:+ $flags}" -o "$output" "$@" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    # Wait a little, but not longer than the build.
    for _ in $(seq 200); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -0 "$pid" 2>/dev/null || break
    still=$(left "$@")
    if [ "$all" = 0 ]; then all=$still; echo "Compiling ${*##*/}"; fi
    echo "  ... $((SECONDS - started)) s so far, $still of $all packages left"
  done
  wait "$pid"
  echo "Built ${*##*/} in $((SECONDS - started)) s"
}
