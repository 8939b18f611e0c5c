module github.com/ossl-go/ossl/nocgo

go 1.26.0

require (
	github.com/ebitengine/purego v0.11.3
	github.com/ossl-go/ossl v0.1.0
)
