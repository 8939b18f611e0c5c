module github.com/ossl-go/ossl/httptls

go 1.26.0

require (
	github.com/ossl-go/ossl v0.0.0
	golang.org/x/crypto v0.51.0
	golang.org/x/net v0.54.0
)

require golang.org/x/text v0.37.0 // indirect

replace github.com/ossl-go/ossl => ../
