package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// containerdTasks has, in a node's files, a directory for each container that runs.
const containerdTasks = "run/containerd/io.containerd.runtime.v2.task/k8s.io"

// containerConfig is what is read of a container's config.json (OCI runtime specification; the annotations are
// containerd's).
type containerConfig struct {
	Annotations struct {
		Type      string `json:"io.kubernetes.cri.container-type"`
		Name      string `json:"io.kubernetes.cri.sandbox-name"`
		Namespace string `json:"io.kubernetes.cri.sandbox-namespace"`
	} `json:"annotations"`
	Linux struct {
		Namespaces []struct{ Type, Path string } `json:"namespaces"`
	} `json:"linux"`
}

// PodNetwork returns the path, in the host's files, of the network namespace of a pod that runs on the node, as
// containerd has recorded it. For a pod with hostNetwork that is the node's. It is "" if no such pod runs here. Of two
// with one name the newer counts.
func (n *Node) PodNetwork(namespace, pod string) (string, error) {
	root := fmt.Sprintf("/proc/%d/root", n.PID())
	found, err := filepath.Glob(filepath.Join(root, containerdTasks, "*", "config.json"))
	if err != nil {
		return "", fmt.Errorf("finding the network of pod %s/%s: %w", namespace, pod, err)
	}
	var path string
	var newest time.Time
	for _, file := range found {
		info, err := os.Stat(file)
		if err != nil {
			continue // the container has ended meanwhile
		}
		if p, ok := sandboxNetwork(file, namespace, pod); ok && info.ModTime().After(newest) {
			path, newest = fmt.Sprintf("/proc/%d/ns/net", n.PID()), info.ModTime()
			if p != "" { // what containerd has in /var/run is in /run
				path = filepath.Join(root, "run/netns", filepath.Base(p))
			}
		}
	}
	return path, nil
}

// sandboxNetwork is the path of the network namespace that a config.json has, "" for the node's; ok is false if the
// file is not that of the pod's sandbox.
func sandboxNetwork(file, namespace, pod string) (path string, ok bool) {
	var c containerConfig
	raw, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return "", false // the container ends, or has only begun
	}
	for _, n := range c.Linux.Namespaces {
		if n.Type == "network" {
			path = n.Path
		}
	}
	a := c.Annotations
	return path, a.Type == "sandbox" && a.Namespace == namespace && a.Name == pod
}
