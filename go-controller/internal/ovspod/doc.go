// Package ovspod runs Open vSwitch's two daemons in the containers of a pod: ovsdb-server with the Open_vSwitch
// database, and ovs-vswitchd. The files are where a machine's own Open vSwitch has them, so that every program finds
// them there.
//
// Pods keep their network as far as that is possible:
//
//   - Nothing is taken down when a daemon ends: the kernel's datapath goes on with the flows that it knows.
//   - Before ovs-vswitchd ends, its OpenFlow rules are saved (Flows). The next one gets them back before it handles a
//     packet (other_config:flow-restore-wait, ovs-vswitchd.conf.db(5)).
//   - ovs-vswitchd is started again at once when it dies.
//
// Neither daemon starts while the machine's own Open vSwitch runs.
package ovspod
