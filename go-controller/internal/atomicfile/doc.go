// Package atomicfile replaces files atomically: a reader sees either the old or the new contents, also after a loss of
// power.
package atomicfile
