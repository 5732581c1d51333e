// Command flannel is flanneld with the backend that it uses by default, VXLAN. Its packages are flannel's own.
//
// flannel's own command also has the backend of one cloud, whose library not every machine can download.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
)

// These are flanneld's defaults, and the files of its manifest.
const (
	annotationPrefix = "flannel.alpha.coreos.com"
	netConf          = "/etc/kube-flannel/net-conf.json"
	subnetFile       = "/run/flannel/subnet.env"
	resyncSeconds    = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does what flanneld does with --ip-masq and --kube-subnet-mgr.
func run(ctx context.Context) error {
	manager, err := kube.NewSubnetManager(ctx, "", "", annotationPrefix, netConf, true)
	if err != nil {
		return err
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return err
	}
	stack, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return err
	}
	external, err := ipmatch.LookupExtIface("", "", "", stack, ipmatch.PublicIPOpts{})
	if err != nil {
		return err
	}
	tunnels, err := backend.NewManager(ctx, manager, external).GetBackend(config.BackendType)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	network, err := tunnels.RegisterNetwork(ctx, &running, config)
	if err != nil {
		return err
	}
	lease := network.Lease()
	rules := &iptables.IPTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return err
	}
	if err := rules.SetupAndEnsureMasqRules(ctx, config.Network, ip.IP4Net{}, ip.IP4Net{}, config.IPv6Network, ip.IP6Net{},
		ip.IP6Net{}, lease, resyncSeconds, false); err != nil {
		return err
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resyncSeconds)
	if err := manager.HandleSubnetFile(subnetFile, config, true, lease.Subnet, lease.IPv6Subnet,
		network.MTU()); err != nil {
		return err
	}
	running.Go(func() { network.Run(ctx) })
	err = manager.CompleteLease(ctx, lease, &running)
	running.Wait()
	return err
}
