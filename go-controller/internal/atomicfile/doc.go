// Package atomicfile replaces files whole: who reads one sees what was there
// before or what is there now, also after a loss of power.
package atomicfile
