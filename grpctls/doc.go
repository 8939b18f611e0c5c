// Package grpctls provides gRPC transport credentials that use OpenSSL for TLS, through package
// ossl.
//
// They replace the credentials in google.golang.org/grpc/credentials, with the same constructors,
// and can be used everywhere in their place: the peer's AuthInfo is a [credentials.TLSInfo]. In the
// simplest case only an import changes:
//
//	client, err := grpc.NewClient(target, grpc.WithTransportCredentials(grpctls.NewTLS(&tls.Config{RootCAs: roots})))
//	server := grpc.NewServer(grpc.Creds(grpctls.NewServerTLSFromCert(&cert)))
//
// [New] does the same, takes options of package ossl, and returns an error at once if the
// configuration can't be honoured. NewTLS has no error result, so its handshakes fail instead.
// [FromContext] uses an existing [ossl.Context].
//
// # ALPN
//
// As in gRPC, a handshake fails if the peer doesn't agree on HTTP/2 by ALPN. If gRPC's environment
// variable GRPC_ENFORCE_ALPN_ENABLED is "false" when the program starts, peers without ALPN are
// accepted here too.
//
// docs/GRPC.md is the guide, and lists the differences from gRPC's own credentials.
package grpctls
