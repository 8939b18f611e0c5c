module github.com/ossl-go/ossl/examples

go 1.26.0

require (
	github.com/ossl-go/ossl v0.1.0
	github.com/ossl-go/ossl/grpctls v0.1.0
	github.com/ossl-go/ossl/httptls v0.1.0
	github.com/ossl-go/ossl/session/redisstore v0.1.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/spiffe/go-spiffe/v2 v2.9.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
