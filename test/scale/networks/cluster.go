package networks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
	"github.com/northbound-net/northbound/test/scale/rig"
)

const (
	northbound = "OVN_Northbound"
	southbound = "OVN_Southbound"
)

// nodes is how many nodes there are. Their subnets have room for the eth0 of all pods.
const (
	nodes   = 2
	subnets = "10.128.0.0/14/20,fd01::/48/64"
)

// run is a running measurement of one release.
type run struct {
	Config
	tell    func(string)
	rig     *rig.Rig
	system  *central.System
	chassis *central.Chassis
	master  *rig.Master

	nb, sb                       *ovsdbwire.Client
	nbServer, sbServer, northd   *process.Process
	computed, installed          *load.Tracker // values of nb_cfg
	watches                      []*ovsdbwire.Client
	config                       int          // nb_cfg so far
	networks, nextPod, nextPorts int          // so far
	later                        int          // networks that came as changes
	ports                        atomic.Int64 // of pods, that are to be there
	empty                        counts
}

// start starts everything, with a cluster without networks.
func (r *run) start(ctx context.Context) (err error) {
	if r.nb, r.nbServer, err = r.system.Database(ctx, "nb", "ovn/ovn-nb.ovsschema"); err != nil {
		return err
	}
	if r.sb, r.sbServer, err = r.system.Database(ctx, "sb", "ovn/ovn-sb.ovsschema"); err != nil {
		return err
	}
	if r.chassis, err = r.system.NewChassis(ctx); err != nil {
		return err
	}
	err = r.nb.Transact(northbound, map[string]any{"op": "insert", "table": "NB_Global", "row": map[string]any{}})
	if err != nil {
		return err
	}
	file := filepath.Join(r.system.Dir, "nb.db")
	r.rig.NB = &rig.Northbound{Process: r.nbServer, Socket: r.system.Socket("nb"), File: file,
		Log: ovsdbwire.OpenLog(file)}
	if r.northd, err = r.system.Northd(); err != nil {
		return err
	}
	if err := r.watch(ctx); err != nil {
		return err
	}
	err = errors.Join(load.KnowNetworks(ctx, r.rig.Objects, r.Kinds), load.Nodes(ctx, r.rig.Kube, nodes))
	if err != nil {
		return err
	}
	if err := r.startMaster(ctx); err != nil {
		return err
	}
	if err := r.startChassis(ctx); err != nil {
		return err
	}
	r.empty, err = r.count(ctx)
	return err
}

func (r *run) startMaster(ctx context.Context) (err error) {
	r.master, err = r.rig.StartMasterAt(ctx, rig.MetricsAddr, "--leader-elect=false", "--cluster-subnets", subnets)
	if err != nil {
		return err
	}
	_, err = r.master.WaitReady(ctx)
	return err
}

// startChassis starts the chassis of the first node, and makes that of the second.
func (r *run) startChassis(ctx context.Context) error {
	if err := r.chassis.StartSwitch(ctx, load.ChassisID(0)); err != nil {
		return err
	}
	if err := r.chassis.StartController(); err != nil {
		return err
	}
	err := r.sb.Transact(southbound, central.FakeChassis(load.ChassisID(1), load.NodeName(1), "192.0.2.1")...)
	if err != nil {
		return fmt.Errorf("making a chassis: %w", err)
	}
	_, err = r.sync(ctx, r.installed)
	return err
}

// tenant is the namespace of the i-th network.
func tenant(i int) string { return fmt.Sprintf("tenant-%04d", i) }

// makeNetwork makes the i-th network with its namespace, and a pod on each node.
func (r *run) makeNetwork(ctx context.Context, i int) error {
	if err := load.Tenant(ctx, r.rig.Kube, r.rig.Objects, tenant(i), load.Layer2); err != nil {
		return err
	}
	return r.makePods(ctx, tenant(i), 0, nodes)
}

// makePods makes the pods from to to-1 of a namespace, on the nodes in turn.
func (r *run) makePods(ctx context.Context, namespace string, from, to int) error {
	for i := from; i < to; i++ {
		if _, _, err := load.CreatePod(ctx, r.rig.Kube, namespace, i, nodes); err != nil {
			return err
		}
		r.ports.Add(int64(len(ports(namespace, i))))
	}
	return nil
}

// waitForPods waits until the pods of a namespace, or of all with "", have addresses in their networks. poll is how
// often it asks.
func (r *run) waitForPods(ctx context.Context, namespace string, poll time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	missing := 0
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		list, err := r.rig.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("listing pods: %w", err)
		}
		missing = 0
		for _, p := range list.Items {
			if !strings.Contains(p.Annotations[load.PodNetworks], `"`+p.Namespace+"."+load.NetworkName+"/") {
				missing++
			}
		}
		return missing == 0 && len(list.Items) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until pods have addresses: %d have none: %w: %s", missing, err, r.master.Tail())
	}
	return nil
}

// waitForPorts waits until the Northbound database has the ports of all pods: they come a moment after the addresses.
func (r *run) waitForPorts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	have := 0
	err := wait.PollUntilContextCancel(ctx, pollOne, true, func(ctx context.Context) (bool, error) {
		text, err := r.system.Run(ctx, "ovn-nbctl", "--db=unix:"+r.system.Inside("nb.sock"), "--timeout=60", "--bare",
			"--columns=_uuid", "find", "Logical_Switch_Port", "external_ids:pod=true")
		have = len(strings.Fields(text))
		return have >= int(r.ports.Load()), err
	})
	if err != nil {
		return fmt.Errorf("waiting until all pods have ports: %d of %d have: %w: %s", have, r.ports.Load(), err,
			r.master.Tail())
	}
	return nil
}

// ports are the logical ports of a pod: in the cluster's own network, and in its namespace's.
func ports(namespace string, pod int) []string {
	own := namespace + "_" + load.PodName(pod)
	return []string{own, namespace + "." + load.NetworkName + "_" + own + "_ovn-udn1"}
}

// plug does for pods what a node does: the first node adds interfaces, the second binds the ports of its pods.
func (r *run) plug(ctx context.Context, pods map[string][]int) error {
	interfaces := map[string]string{}
	var bound []any
	for namespace, some := range pods {
		for _, pod := range some {
			for _, port := range ports(namespace, pod) {
				if pod%nodes == 0 {
					interfaces[fmt.Sprintf("vif%d", r.nextPorts)] = port
					r.nextPorts++
					continue
				}
				bound = append(bound, central.Bind(port, load.ChassisID(1)))
			}
		}
	}
	if len(bound) > 0 {
		if err := r.sb.Transact(southbound, bound...); err != nil {
			return fmt.Errorf("binding ports: %w", err)
		}
	}
	if len(interfaces) == 0 {
		return nil
	}
	return r.chassis.AddInterfaces(ctx, interfaces)
}

// close ends everything, and removes it.
func (r *run) close() error {
	var errs []error
	if r.master != nil {
		errs = append(errs, r.master.Kill())
	}
	for _, c := range append(r.watches, r.nb, r.sb) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if r.northd != nil {
		errs = append(errs, r.northd.Kill())
	}
	if r.chassis != nil {
		errs = append(errs, r.chassis.Close())
	}
	if r.system != nil {
		errs = append(errs, r.system.Close())
	}
	if r.rig != nil {
		errs = append(errs, r.rig.Close())
	}
	return errors.Join(errs...)
}
