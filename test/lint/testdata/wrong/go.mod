module github.com/northbound-net/northbound

go 1.26.0

require (
	github.com/ovn-kubernetes/libovsdb v0.0.0
	github.com/urfave/cli v0.0.0
	github.com/vishvananda/netlink v0.0.0
	k8s.io/api v0.0.0
	example.com/old v0.0.0
)

replace (
	example.com/old => ./stubs/old
	github.com/ovn-kubernetes/libovsdb => ./stubs/libovsdb
	github.com/urfave/cli => ./stubs/cli
	github.com/vishvananda/netlink => ./stubs/netlink
	k8s.io/api => ./stubs/api
)
