// Package hosttest tests whole libp2p hosts with each other, one on go-libp2p's TLS transport and
// one on OpenSSL's.
//
// It is in another module than libp2ptls because libp2p's hosts need QUIC, WebRTC and WebTransport:
// building those takes longer than all the tests of libp2ptls. ci/libp2p-full runs it.
package hosttest
