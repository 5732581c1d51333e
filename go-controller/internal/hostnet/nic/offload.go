package nic

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ethtool"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
)

// flagLRO is ETH_FLAG_LRO of linux/ethtool.h.
const flagLRO = 1 << 15

// readOffloads tells which offloads that merge received packets are on: "gro" and
// "lro".
func readOffloads(link string) (map[string]bool, error) {
	out := map[string]bool{}
	for name, command := range map[string]uint32{"gro": unix.ETHTOOL_GGRO, "lro": unix.ETHTOOL_GFLAGS} {
		v, err := ethtool.Call(link, command, 0)
		switch {
		case errors.Is(err, unix.EOPNOTSUPP), item.IsAbsent(err):
		case err != nil:
			return nil, fmt.Errorf("reading offload %s of %s: %w", name, link, err)
		case name == "lro":
			out[name] = v&flagLRO != 0
		default:
			out[name] = v != 0
		}
	}
	return out, nil
}

func setOffload(o nicmove.Offload) error {
	value := uint32(0)
	switch o.Name {
	case "gro":
		if o.On {
			value = 1
		}
		_, err := ethtool.Call(o.Link, unix.ETHTOOL_SGRO, value)
		return err
	case "lro":
		value, err := ethtool.Call(o.Link, unix.ETHTOOL_GFLAGS, 0)
		if err != nil {
			return err
		}
		value &^= flagLRO
		if o.On {
			value |= flagLRO
		}
		_, err = ethtool.Call(o.Link, unix.ETHTOOL_SFLAGS, value)
		return err
	default:
		return fmt.Errorf("offload %q is not known here", o.Name)
	}
}
