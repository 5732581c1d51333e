// Command hello is a minimal Go program, with which bench compares the CNI plugin.
package main

import "fmt"

func main() { fmt.Println("hello, world") }
