package control

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/northbound-net/northbound/test/sandbox/member"
)

// How a cluster notices that a part of it is dead, in milliseconds. docs/operate/high-availability.md has the reasons.
const (
	electionTimer = 4000  // a follower that hears nothing from the leader for so long, or up to twice that, stands itself
	listenerProbe = 60000 // of the servers, for their clients
	northdProbe   = 10000
	// NodeProbe is that of ovn-controller where it can choose among several servers.
	NodeProbe = 10000
)

// northdThreads is how many threads of ovn-northd compute logical flows, where it computes all of them.
const northdThreads = 2

// database is what differs between the Northbound and the Southbound database.
type database struct {
	service, name, global, socket string
	raft                          uint16   // port of the servers of a cluster among themselves
	connections                   []string // where it listens for other machines, in the words of set-connection
}

// databases are both. A node may write what its role allows, depending on its certificate's common name. An ovn-northd
// that is not on the leader's machine needs a listener without a role.
func (c *Control) databases() []database {
	sb := []string{"role=ovn-controller", listener(SBPort)}
	if c.clustered() {
		sb = append(sb, "role=", listener(SBFullPort))
	}
	return []database{
		{NB, "OVN_Northbound", "NB_Global", NBSocket, NBRaftPort, []string{listener(NBPort)}},
		{SB, "OVN_Southbound", "SB_Global", SBSocket, SBRaftPort, sb},
	}
}

func listener(port uint16) string { return fmt.Sprintf("pssl:%d:[::]", port) }

func (c *Control) clustered() bool { return len(c.Config.Machines) > 1 }

// remote is how to reach a database on every control machine.
func (c *Control) remote(port uint16) string { return Remote(c.Config.Machines, port) }

// Remote is how to reach a database on these machines.
func Remote(machines []netip.Addr, port uint16) string {
	var all []string
	for _, m := range machines {
		all = append(all, "ssl:"+netip.AddrPortFrom(m, port).String())
	}
	return strings.Join(all, ",")
}

// StartDatabases starts the machine's server of each database. The first machine's must run before those of others.
func (c *Control) StartDatabases(ctx context.Context) error {
	if c.Config.Index == 0 {
		if err := c.certify(); err != nil {
			return fmt.Errorf("making the databases' certificates: %w", err)
		}
	}
	for _, d := range c.databases() {
		if err := c.startDatabase(ctx, d); err != nil {
			return err
		}
		if err := c.listen(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// LoseDatabases ends the servers of both databases, deletes their files, and starts the servers with empty ones. The
// Southbound one listens for nodes when filled, which is called in between, has returned, and ovn-northd has followed.
// filled waits until the Northbound database has everything. It is for databases that are no clusters.
func (c *Control) LoseDatabases(ctx context.Context, filled func(context.Context) error) error {
	for _, d := range c.databases() {
		if err := c.StopService(ctx, d.service, syscall.SIGKILL); err != nil {
			return err
		}
		for _, file := range []string{d.file(), d.socket} {
			if err := os.Remove(c.Host(file)); err != nil {
				return fmt.Errorf("losing the databases: %w", err)
			}
		}
	}
	for _, d := range c.databases() {
		if err := c.startDatabase(ctx, d); err != nil {
			return err
		}
		if d.service == NB {
			if err := c.listen(ctx, d); err != nil {
				return err
			}
			continue
		}
		if err := filled(ctx); err != nil {
			return err
		}
		if _, err := c.Run(ctx, "ovn-nbctl", "--db=unix:"+NBSocket, "--timeout=60", "--wait=sb", "sync"); err != nil {
			return err
		}
		if err := c.listen(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// file is the database's file.
func (d database) file() string { return "/run/ovn/" + d.service + ".db" }

func (c *Control) startDatabase(ctx context.Context, d database) error {
	file := d.file()
	if _, err := c.Run(ctx, append([]string{"ovsdb-tool"}, c.creation(d, file)...)...); err != nil {
		return err
	}
	k := c.ServerKeys(d.service)
	err := c.StartService(ctx, member.Service{Name: d.service, Argv: []string{
		"ovsdb-server", "--no-chdir", "-vsyslog:off", "--pidfile=/run/ovn/" + d.service + ".pid",
		"--unixctl=/run/ovn/" + d.service + ".ctl",
		"--remote=punix:" + d.socket, "--remote=db:" + d.name + "," + d.global + ",connections",
		"--private-key=" + k.Key, "--certificate=" + k.Cert, "--ca-cert=" + k.CA, file,
	}})
	if err != nil {
		return err
	}
	return c.Until(ctx, "the "+d.service+" database works on "+c.Spec.Name, func(ctx context.Context) bool {
		return accepts(ctx, c.Host(d.socket)) && (!c.clustered() || c.Joined(ctx, d.service))
	}, d.service)
}

// accepts tells whether a server accepts connections at a socket. The file is there a moment earlier.
func accepts(ctx context.Context, socket string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// listen has the servers of a database listen for clients. The first machine does so for all.
func (c *Control) listen(ctx context.Context, d database) error {
	if c.Config.Index > 0 {
		return nil
	}
	_, err := c.Run(ctx, append([]string{"ovn-" + d.service + "ctl", "--db=unix:" + d.socket, "--timeout=30", "init", "--",
		fmt.Sprintf("--inactivity-probe=%d", listenerProbe), "set-connection"}, d.connections...)...)
	return err
}

// creation is how ovsdb-tool makes the file of a server.
func (c *Control) creation(d database, file string) []string {
	schema := "/usr/share/ovn/ovn-" + d.service + ".ovsschema"
	at := func(machine int) string { return Remote(c.Config.Machines[machine:machine+1], d.raft) }
	switch {
	case !c.clustered():
		return []string{"create", file, schema}
	case c.Config.Index == 0:
		return []string{fmt.Sprintf("--election-timer=%d", electionTimer), "create-cluster", file, schema, at(0)}
	default:
		return []string{"join-cluster", file, d.name, at(c.Config.Index), at(0)}
	}
}

// StartNorthd starts ovn-northd. Of several, the one works that has a lock in the Southbound database.
func (c *Control) StartNorthd(ctx context.Context) error {
	argv := []string{"ovn-northd", "--no-chdir", "-vsyslog:off", "--pidfile=/run/ovn/ovn-northd.pid",
		"--unixctl=/run/ovn/northd.ctl"}
	if !c.clustered() {
		argv = append(argv, "--ovnnb-db=unix:"+NBSocket, "--ovnsb-db=unix:"+SBSocket)
	} else {
		k := c.northdKeys()
		argv = append(argv, "--ovnnb-db="+c.remote(NBPort), "--ovnsb-db="+c.remote(SBFullPort), "--private-key="+k.Key,
			"--certificate="+k.Cert, "--ca-cert="+k.CA, fmt.Sprintf("--n-threads=%d", northdThreads))
	}
	return c.StartService(ctx, member.Service{Name: Northd, Argv: argv})
}

// WaitNorthd waits until an ovn-northd has written to the Southbound database, and gives several their settings.
func (c *Control) WaitNorthd(ctx context.Context) error {
	args := []string{"--timeout=60", "--wait=sb"}
	if c.clustered() {
		args = append(args, "set", "NB_Global", ".", fmt.Sprintf("options:northd_probe_interval=%d", northdProbe), "--")
	}
	_, err := c.Run(ctx, append(c.NBCtl(), append(args, "sync")...)...)
	return err
}

// NBCtl is the beginning of a command line of ovn-nbctl.
func (c *Control) NBCtl() []string {
	return c.ctl("ovn-nbctl", NBSocket, NBPort, c.NBKeys())
}

// SBCtl is the beginning of a command line of ovn-sbctl, with all rights.
func (c *Control) SBCtl() []string {
	return c.ctl("ovn-sbctl", SBSocket, SBFullPort, c.northdKeys())
}

// OVNKube is what a command line of ovnkube begins with, so that it has the master's addresses and an administrator's
// rights. It works with the machine's files as well as with the host's.
func (c *Control) OVNKube() []string {
	k := c.NBKeys()
	return []string{"env", "NORTHBOUND_KUBECONFIG=" + c.AdminKubeconfig(), "NORTHBOUND_LOG_LEVEL=warn",
		"NORTHBOUND_NB_ADDRESS=" + c.remote(NBPort), "NORTHBOUND_NB_PRIVKEY=" + k.Key, "NORTHBOUND_NB_CERT=" + k.Cert,
		"NORTHBOUND_NB_CACERT=" + k.CA}
}

func (c *Control) ctl(program, socket string, port uint16, k Keys) []string {
	if !c.clustered() {
		return []string{program, "--db=unix:" + socket}
	}
	return []string{program, "--db=" + c.remote(port), "-p", k.Key, "-c", k.Cert, "-C", k.CA}
}
