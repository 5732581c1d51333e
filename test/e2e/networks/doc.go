// Package networks checks pods' further interfaces with real packets: networks of one switch, of a switch for each
// node, and of a VLAN outside; two tenants with the same addresses; what nobody may reach; and that nothing is left.
package networks
