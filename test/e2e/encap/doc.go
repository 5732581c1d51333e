// Package encap proves that nodes reach each other through every kind of tunnel
// that `ovnkube node` can set up, with packets of the full size that it
// promises: Geneve and VXLAN, over IPv4, over IPv6, and with an end in each.
// It brings up two nodes of its own, and moves them from one kind to the next by
// starting their agents with other flags, as an operator would.
package encap
