// Package snapshot writes the objects of a cluster that the network depends on as one manifest. `ovnkube translate`
// makes the same rows of the manifest as the master of the cluster. What the network does not depend on is left out,
// such as environment variables, commands, volumes and foreign annotations: they may hold passwords.
package snapshot
