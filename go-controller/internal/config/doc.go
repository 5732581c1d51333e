// Package config has the settings that an operator can make, as plain values, with their defaults. Validate names the
// flag of a wrong setting and says what would be right. cmd/ovnkube fills the values in from flags and environment; no
// other package knows where a value came from. There is no global configuration: each package gets the part that it
// needs.
package config
