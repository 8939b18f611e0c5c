module github.com/ossl-go/ossl

go 1.25.0
