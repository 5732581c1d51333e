// Package xtables reads the rules of the old iptables, which `iptables-legacy` writes. They act beside those of
// nftables, and `nft list ruleset` does not show them. It only reads, and needs none of iptables' programs.
package xtables
