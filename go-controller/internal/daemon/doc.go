// Package daemon runs a program with the options of Open vSwitch's daemons (ovs-vswitchd(8), "Daemon Options" and
// "Logging Options"): --pidfile, --detach, --log-file and -vDESTINATION:LEVEL.
package daemon
