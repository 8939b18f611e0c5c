module github.com/ossl-go/ossl/grpctls

go 1.26.0

