// Package settings shares the settings of the cluster's network through a ConfigMap. The leading master publishes what
// it runs with. Agents and commands take from it what their own flags leave out.
package settings
