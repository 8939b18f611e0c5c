module github.com/ossl-go/ossl/audit

go 1.26.0

require (
	github.com/ossl-go/ossl v0.1.0
	golang.org/x/crypto v0.58.0
)
