// Package preflight examines a machine before Northbound is installed there. It reports what is missing or in the way,
// and the command that solves it. It changes nothing.
//
// Read collects Facts of the machine. Each check is a pure function of what the operator wants (Config) and of the
// Facts. `ovnkube doctor` (package doctor) examines a node after the installation. Its findings have the same form.
package preflight
