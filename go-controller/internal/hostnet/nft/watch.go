package nft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Watch calls changed for every change of our tables or in them, until ctx ends.
// When the kernel's messages are lost, lost is called with the reason and Watch
// must be called again.
func Watch(ctx context.Context, changed func(), lost func(error)) error {
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, socket.Close)
	go func() {
		for {
			messages, _, err := socket.Receive()
			if errors.Is(err, unix.ENOBUFS) { // more changes at once than there is room for
				changed()
				continue
			}
			if err != nil {
				if ctx.Err() == nil {
					lost(fmt.Errorf("receiving nftables events: %w", err))
				}
				return
			}
			for _, m := range messages {
				if m.Header.Type>>8 == unix.NFNL_SUBSYS_NFTABLES && tableName(m.Data) == names.NFTable {
					changed()
				}
			}
		}
	}()
	return nil
}

// tableName is the table that an nftables message is about: the attribute of number 1
// of tables, chains, rules and sets alike (linux/netfilter/nf_tables.h).
func tableName(message []byte) string {
	return strings.TrimRight(string(attribute(message, unix.NFTA_TABLE_NAME)), "\x00")
}

// attribute is the value of an nftables message's attribute; nil when it has none.
func attribute(message []byte, number uint16) []byte {
	if len(message) < nl.SizeofNfgenmsg {
		return nil
	}
	attrs, err := nl.ParseRouteAttr(message[nl.SizeofNfgenmsg:])
	i := slices.IndexFunc(attrs, func(a syscall.NetlinkRouteAttr) bool { return a.Attr.Type == number })
	if err != nil || i < 0 {
		return nil
	}
	return attrs[i].Value
}
