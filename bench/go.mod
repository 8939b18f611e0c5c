module github.com/ossl-go/ossl/bench

go 1.26.0

require github.com/ossl-go/ossl v0.1.0

require golang.org/x/sys v0.49.0

require golang.org/x/net v0.62.0
