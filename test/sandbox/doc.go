// Package sandbox runs a real Kubernetes cluster with OVN on one machine, in namespaces: a control machine with etcd,
// kube-apiserver, controllers, scheduler, the OVN databases, northd and `ovnkube master`; and nodes with ovs-vswitchd
// (userspace datapath), ovn-controller, containerd, a kubelet and `ovnkube node`. It installs nothing but debootstrap,
// runs nothing in the machine's own network namespace, and needs no kernel module.
//
// Up makes a sandbox. Down removes every trace of it, even if Up was interrupted or its processes were killed. Several
// sandboxes with different names can exist at the same time. The program `sandbox` is a thin layer over this package. A
// Go test uses the package directly:
//
//	cluster, err := sandbox.Up(ctx, sandbox.Options{Name: "e2e", DualStack: true})
//	defer cluster.Down(context.Background())
//
// Options.OVN, or SANDBOX_OVN in the environment, chooses another OVN than the one that the tests depend on: Debian's
// newest, or this machine's.
//
// It needs root, Linux, apt for the first root filesystem, and the programs
// that `make sandbox` builds.
package sandbox
