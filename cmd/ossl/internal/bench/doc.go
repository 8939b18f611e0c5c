// Package bench compares the performance of ossl and crypto/tls.
//
// Its benchmarks are in bench_test.go; the code that they run is here, so that the command ossl
// measures with the same code. A [Measure] does one operation at a time for a [Pair] of
// implementations: a handshake ([NewHandshake]), a round trip ([NewLatency]), a whole connection
// ([NewConnections]), one write of a stream ([NewBulk]). [SplitCPU] and [Crossings] measure the
// same operations in other ways, and [IdleMemory] measures the memory of a connection that does
// nothing.
//
// As lower bounds for any binding to libssl there are data over [Plain] TCP, and handshakes in C
// alone, which are a separate program in floor.
//
// Both implementations always get the same keys and certificates, TLS 1.3, one pinned group,
// TLS_AES_128_GCM_SHA256, and no session tickets. Each Measure checks with its first connection
// that these were negotiated.
package bench
