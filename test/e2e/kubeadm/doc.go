// Package kubeadm installs the chart on clusters that kubeadm has made, with kubeadm's defaults. It runs the commands
// of docs/operate/kubeadm.md, on machines without systemd. One cluster has flannel, and leaves it with the commands of
// docs/operate/migrate.md.
//
// What kubeadm's machines have, and a sandbox's do not: a kubelet whose files kubeadm writes, the API server as a pod
// of the control-plane node, that node's taint, CoreDNS, and kube-proxy until somebody turns it off. The images of
// these are made here, from programs that test/build.sh builds.
package kubeadm
