module github.com/ossl-go/ossl/cmd/ossl

go 1.25.0

require (
	github.com/ossl-go/ossl v0.0.0
	github.com/ossl-go/ossl/bench v0.0.0
)

replace (
	github.com/ossl-go/ossl => ../../
	github.com/ossl-go/ossl/bench => ../../bench
)
