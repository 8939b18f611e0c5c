package grpctls

import (
	"crypto/tls"
	"slices"

	"google.golang.org/grpc"
)

// NewClient is like [grpc.NewClient] with the credentials that [New] returns for config. They
// replace any credentials in opts.
func NewClient(target string, config *tls.Config, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	creds, err := New(config)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(target, append(slices.Clone(opts), grpc.WithTransportCredentials(creds))...)
}
