// Package bench measures ossl beside crypto/tls.
//
// Its benchmarks are in bench_test.go; what they run is here, so that the
// command ossl measures with the very same code. A [Measure] does one
// operation at a time for a [Pair] of implementations: a [Handshake], a round
// trip ([Latency]), a whole connection ([Connections]), one write of a stream
// ([Bulk]). [SplitCPU] and [CountCrossings] look at the same operations from
// other sides, and [IdleMemory] asks what a connection that does nothing costs.
//
// Beside them is what no binding to libssl can beat: data over [Plain] TCP, and
// handshakes in C alone, which are a program of their own in floor (see ci/floor).
//
// Both implementations always get the same keys and certificates, TLS 1.3, one
// pinned group, TLS_AES_128_GCM_SHA256, and no session tickets. Each Measure
// checks with its first connection that this is what was negotiated.
package bench
