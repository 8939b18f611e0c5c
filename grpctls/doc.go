// Package grpctls gives gRPC transport credentials whose TLS is package ossl's.
package grpctls
