// Package process runs the programs that a measurement needs and tells what
// they cost. Every process it starts ends with Stop, and also when the program
// that started it is killed. It works on Linux only (proc(5), prctl(2)).
package process
