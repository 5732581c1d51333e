// Package manifest reads Kubernetes objects from files, for the commands that work without an API server.
package manifest
