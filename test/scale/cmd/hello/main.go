// Command hello is the least that a Go program can be: bench sets the CNI
// plugin beside it.
package main

import "fmt"

func main() { fmt.Println("hello, world") }
