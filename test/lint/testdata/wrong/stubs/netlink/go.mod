module github.com/vishvananda/netlink

go 1.26.0
