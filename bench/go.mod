module github.com/ossl-go/ossl/bench

go 1.25.0

require github.com/ossl-go/ossl v0.0.0

require golang.org/x/sys v0.44.0

require golang.org/x/net v0.54.0

replace github.com/ossl-go/ossl => ../
