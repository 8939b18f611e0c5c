module github.com/ossl-go/ossl/dbtls

go 1.26.0

require github.com/ossl-go/ossl v0.1.0
