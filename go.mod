module github.com/ossl-go/ossl

go 1.26.0
