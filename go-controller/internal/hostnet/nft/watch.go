package nft

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

// nfgenmsgSize is the size of struct nfgenmsg (linux/netfilter/nfnetlink.h).
const nfgenmsgSize = 4

// tableName is the table that an nftables message is about. After the header
// (struct nfgenmsg) it is the attribute of number 1 of tables, chains,
// rules and sets alike (linux/netfilter/nf_tables.h).
func tableName(message []byte) string {
	if len(message) < nfgenmsgSize {
		return ""
	}
	attrs, err := nl.ParseRouteAttr(message[nfgenmsgSize:])
	if err != nil {
		return ""
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.NFTA_TABLE_NAME {
			return strings.TrimRight(string(a.Value), "\x00")
		}
	}
	return ""
}
