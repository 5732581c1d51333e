// Package encap checks that nodes reach each other through every kind of tunnel that `ovnkube node` can set up, with
// packets of the full MTU: Geneve and VXLAN, over IPv4, over IPv6, and between both. It starts two nodes of its own,
// and changes the kind of tunnel by restarting their agents with other flags, as an operator would.
package encap
