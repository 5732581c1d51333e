// Package write is the only place that changes objects that others own: it patches annotations and conditions, and
// makes Events.
package write
