// Package config holds what an operator can set, as plain values: Default()
// says what holds when nothing is set, and Validate() what is wrong, naming
// the flag and what would be right. cmd/ovnkube fills the values from flags and
// environment; nothing below it knows where a value came from. There is no
// global configuration: each part is handed the part of Config it needs.
package config
