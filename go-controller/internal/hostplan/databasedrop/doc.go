// Package databasedrop plans that the kernel drops what pods send to the ports of OVN's databases. It is a room of
// package hostplan and pure like it. Package gateway plans the same for what pods send through a gateway router.
package databasedrop
