// Package systemd runs the Debian package's services under a real systemd, as docs/operate/service.md has it. systemd
// is the first process of a machine that takes the place of a node of the sandbox, with that node's addresses, name,
// keys and credentials.
package systemd
