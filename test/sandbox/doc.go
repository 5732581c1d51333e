// Package sandbox is a real Kubernetes cluster with OVN on one machine, made of
// namespaces: a control machine with etcd, kube-apiserver, controllers,
// scheduler, the OVN databases, northd and `ovnkube master`; and nodes with
// ovs-vswitchd (userspace datapath), ovn-controller, containerd, a kubelet and
// `ovnkube node`. Nothing is installed but debootstrap, nothing runs in the
// machine's own network namespace, and no kernel module is needed.
//
// Up makes one and Down removes every trace of it, also one that was
// interrupted or whose processes were killed. Several live side by side under
// different names. The program `sandbox` is a thin layer over this package; a
// Go test uses it directly:
//
//	cluster, err := sandbox.Up(ctx, sandbox.Options{Name: "e2e", DualStack: true})
//	defer cluster.Down(context.Background())
//
// Options.OVN, or SANDBOX_OVN in the environment, chooses another OVN than the
// one that the tests depend on: the newest that Debian has, or this machine's.
//
// It needs root, Linux, apt for the first root filesystem, and the programs
// that `make sandbox` builds.
package sandbox
