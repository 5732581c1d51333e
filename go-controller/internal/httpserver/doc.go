// Package httpserver has what HTTP servers in the network share: serving until a context ends, and reading the token of
// a request. What a server answers, whom it trusts and its limits stay with the server.
package httpserver
