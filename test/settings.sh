# Sourced by the scripts that run Go, and the same as in the Makefile: one setting for every build. Another one compiles
# everything again, Kubernetes too. CGO_ENABLED=0 makes static programs. With -trimpath, a checkout in another directory
# uses what this one has compiled.
export CGO_ENABLED=0
case " ${GOFLAGS:-} " in
*" -trimpath "*) ;;
*) export GOFLAGS="-trimpath${GOFLAGS:+ $GOFLAGS}" ;;
esac
