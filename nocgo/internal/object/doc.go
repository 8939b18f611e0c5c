// Package object has the objects.
package object
