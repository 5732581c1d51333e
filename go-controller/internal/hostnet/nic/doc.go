// Package nic reads all that a network interface has, and puts it onto another
// one: addresses, routes, rules, neighbours, sysctls and offloads, as values of
// package hostplan/nicmove. It keeps what package item has no need of, such as
// lifetimes, metrics and tables other than the main one.
package nic
