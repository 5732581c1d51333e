// Package tenants lists and changes the tenants of namespaces, for an administrator.
package tenants
