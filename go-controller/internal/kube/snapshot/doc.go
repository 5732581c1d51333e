// Package snapshot writes the objects of a cluster that the network depends on as one manifest, without the parts that
// it
// does not depend on: `ovnkube translate` makes the same rows of the manifest as the master of the cluster. Environment
// variables, commands, volumes and foreign annotations are left out, since they may hold passwords.
package snapshot
