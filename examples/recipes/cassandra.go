package recipes

import (
	"github.com/gocql/gocql"

	"github.com/ossl-go/ossl"
)

// Cassandra returns the settings of a client. gocql dials nodes by their IP addresses, so the
// configuration has a ServerName if the certificates don't have these.
func Cassandra(addr string, dialer *ossl.Dialer) *gocql.ClusterConfig {
	cluster := gocql.NewCluster(addr)
	cluster.Dialer = dialer
	return cluster
}
