module github.com/ossl-go/ossl/libp2ptls

go 1.26.0

