module github.com/ossl-go/ossl/httptls

go 1.26.0

