module github.com/ovn-kubernetes/libovsdb

go 1.26.0
