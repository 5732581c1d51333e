// Package process runs the programs of a measurement and measures their cost. Every process ends with Stop, or when the
// program that started it is killed. It works on Linux only (proc(5), prctl(2)).
package process
