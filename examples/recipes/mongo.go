package recipes

import (
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ossl-go/ossl"
)

// Mongo returns a client of MongoDB. The URI doesn't ask for TLS, which the dialer brings.
func Mongo(uri string, dialer *ossl.Dialer) (*mongo.Client, error) {
	return mongo.Connect(options.Client().ApplyURI(uri).SetDialer(dialer))
}
