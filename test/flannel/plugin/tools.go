//go:build tools

// Package plugin pins flannel's CNI plugin, where it was before it got a module of its own. It is a module of its own
// because flannel needs a newer version of that module, which lacks the plugin.
package plugin

import _ "github.com/containernetworking/plugins/plugins/meta/flannel"
