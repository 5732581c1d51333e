// Package service is a room.
package service
